"""The floors, and the chains of the library that are held against them. Models answer at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from itertools import cycle
from typing import ClassVar, Final

from neurolink_mw.pipeline import BuildContext, Middleware, Outcome, Statistics, wrap_model
from neurolink_mw.protocol import (
    CallOptions,
    Finish,
    FinishReason,
    GenerateResult,
    Kind,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
)

from .measure import Contender

SIZES: Final = (0, 1, 5, 10, 20)
DELTAS: Final = 500

OPTIONS: Final = CallOptions.from_text("Hello")
RESULT: Final = GenerateResult((Text("Hi"),))
PARTS: Final[tuple[StreamPart, ...]] = (
    StreamStart(),
    TextStart("t"),
    *(TextDelta("t", "word ") for _ in range(DELTAS)),
    TextEnd("t"),
    Finish(FinishReason("stop")),
)


# ----------------------------------------------------------------------------------------------------------- models


class AtOnce:
    """A model that costs next to nothing: the same answer, the same parts, every time."""

    provider, model_id = "benchmark", "at-once"

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        return RESULT

    async def do_stream(self, options: CallOptions) -> StreamResult:
        return StreamResult(PartStream(source()))


class Scripted(AtOnce):
    """Gives these answers one after the other, then the same again."""

    def __init__(self, answers: Iterable[GenerateResult]) -> None:
        self._answers = cycle(answers)

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        return next(self._answers)


async def source() -> AsyncIterator[StreamPart]:
    for part in PARTS:
        yield part


# ----------------------------------------------------------------------------------------------------------- floors

Call = Callable[[CallOptions], Awaitable[GenerateResult]]


async def _answer(options: CallOptions) -> GenerateResult:
    return RESULT


def nested_closures(n: int, call: Call = _answer) -> Call:
    """What anybody would write by hand around a call: a function in a function."""
    for _ in range(n):
        call = _around(call)
    return call


def _around(inner: Call) -> Call:
    async def call(options: CallOptions) -> GenerateResult:
        return await inner(options)

    return call


def nested_generators(n: int) -> AsyncIterator[StreamPart]:
    """What anybody would write by hand around a stream: a generator in a generator."""
    parts = source()
    for _ in range(n):
        parts = passing(parts)
    return parts


async def passing(parts: AsyncIterator[StreamPart]) -> AsyncIterator[StreamPart]:
    async for part in parts:
        yield part


# ------------------------------------------------------------------------------------------------------ middlewares


class Wrapping(Middleware):
    """Wraps both calls and changes nothing."""

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await model.do_generate(options)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).through(passing)


class WrappingGenerate(Middleware):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await model.do_generate(options)


class WrappingStream(Middleware):
    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).through(passing)


class Transforming(Wrapping):
    """Has a say in the request as well."""

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return options


class Mapping(Middleware):
    """Looks at each part by a sync function, as most middlewares of a stream do."""

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).map(_same)


def _same(part: StreamPart) -> StreamPart:
    return part


class Scoped(Middleware):
    """Has no hook, and asks for a scope: all that it costs is the boundary."""

    needs_scope: ClassVar[bool | None] = True


class Observing(Middleware):
    """Is told how each call ended."""

    def bind(self, build: BuildContext) -> None:
        build.observe(self._told)

    def _told(self, outcome: Outcome) -> None:
        self.last = outcome


class ObservingParts(Observing):
    """Is shown each part, too."""

    def bind(self, build: BuildContext) -> None:
        build.observe(self._told, on_part=self._shown)

    def _shown(self, part: StreamPart) -> None:
        return None


def members(kind: type[Middleware], n: int) -> list[Middleware]:
    """So many of a kind. Each has an id of its own, for no two members of a chain may share one."""
    return [type(f"{kind.__name__}{number}", (kind,), {})() for number in range(n)]


def chain(
    kind: type[Middleware], n: int, *, around: Sequence[Middleware] = (), statistics: Statistics | None = None
) -> LanguageModel:
    """A model with `n` members of a kind around it, and `around` further out."""
    return wrap_model(AtOnce(), [*around, *members(kind, n)], statistics=statistics)


# -------------------------------------------------------------------------------------------------------- contenders


def calling(call: Call) -> Contender:
    """Times calls."""

    async def run(times: int) -> None:
        for _ in range(times):
            await call(OPTIONS)

    return Contender(run)


def streaming(model: LanguageModel) -> Contender:
    """Times parts, of streams read to their end. Opening the stream is part of it."""

    async def run(times: int) -> None:
        for _ in range(times):
            async for _part in (await model.do_stream(OPTIONS)).stream:
                pass

    return Contender(run, units=len(PARTS))


def iterating(make: Callable[[], AsyncIterator[StreamPart]]) -> Contender:
    """Times parts of a bare iterator: the floor."""

    async def run(times: int) -> None:
        for _ in range(times):
            async for _part in make():
                pass

    return Contender(run, units=len(PARTS))


def closures(sizes: Iterable[int]) -> dict[str, Contender]:
    return {f"closures/{n}": calling(nested_closures(n)) for n in sizes}


def generators(sizes: Iterable[int]) -> dict[str, Contender]:
    return {f"generators/{n}": iterating(lambda n=n: nested_generators(n)) for n in sizes}  # type: ignore[misc]
