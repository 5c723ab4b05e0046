"""Members that write down what happens to them, answers that cost something, and waiting without sleeping."""

from __future__ import annotations

import gc
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import pytest

from neurolink_mw.errors import PolicyDenied
from neurolink_mw.pipeline import BuildContext, Middleware, Outcome, Statistics, Use, When, wrap_model
from neurolink_mw.pipeline import Member as AnyMember
from neurolink_mw.protocol import (
    CallOptions,
    Finish,
    FinishReason,
    GenerateResult,
    InputTokens,
    Kind,
    LanguageModel,
    OutputTokens,
    PartStream,
    StreamPart,
    StreamResult,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    Usage,
)
from neurolink_mw.testing import ScriptedModel

Hook: TypeAlias = Callable[[LanguageModel, CallOptions], Awaitable[Any]]

ASKED = CallOptions.from_text("Hello")


def usage(read: int, written: int) -> Usage:
    return Usage(InputTokens(read, read, 0, 0), OutputTokens(written, written, 0))


NO_TOKENS = usage(0, 0)
COST = usage(10, 2)
STOP = Finish(FinishReason("stop"), COST)


def answer(text: str = "Hi", cost: Usage = COST, reason: str = "stop") -> GenerateResult:
    return GenerateResult((Text(text),), FinishReason(reason), cost)


def parts(*pieces: str, finish: Finish | None = STOP) -> list[StreamPart]:
    head: list[StreamPart] = [StreamStart(), TextStart("0")]
    return [*head, *(TextDelta("0", piece) for piece in pieces), TextEnd("0"), *([finish] if finish else [])]


class Noted(Middleware):
    """Writes the name of each hook into a journal, before and after."""

    def __init__(self, id: str, journal: list[str], *, stage: int | None = None) -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]  # a chain may have many of a kind
        if stage is not None:
            self.stage = stage  # type: ignore[misc]
        self.journal = journal

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        self.journal.append(f"{self.id}.transform({kind})")
        return options

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        self.journal.append(f"{self.id}.generate>")
        result = await model.do_generate(options)
        self.journal.append(f"{self.id}.generate<")
        return result

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        self.journal.append(f"{self.id}.stream>")
        result = await model.do_stream(options)
        self.journal.append(f"{self.id}.stream<")
        return result


class NotedModel:
    """A model that writes its calls into the same journal."""

    provider = "noted"
    model_id = "noted-1"

    def __init__(self, journal: list[str]) -> None:
        self.journal = journal
        self.seen: list[CallOptions] = []

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        self.journal.append("model.generate")
        self.seen.append(options)
        return answer()

    async def do_stream(self, options: CallOptions) -> StreamResult:
        self.journal.append("model.stream")
        self.seen.append(options)
        return StreamResult.of(answer())


class Member(Middleware):
    """A member made of functions: only the hooks that are given are filled in."""

    def __init__(self, id: str = "member", **hooks: object) -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]
        for name, hook in hooks.items():
            if hook is not None:
                setattr(self, name, hook)


class Layer(Middleware):
    """A layer that does something in both calls, and changes nothing: its parts go through a generator of its own."""

    def __init__(self, id: str = "layer") -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await model.do_generate(options)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).through(_passing)


async def _passing(stream: PartStream) -> AsyncIterator[StreamPart]:
    async for part in stream:
        yield part


def layers(count: int) -> list[Layer]:
    return [Layer(f"layer-{index}") for index in range(count)]


class Watch(Middleware):
    """Keeps the outcome of each call."""

    def __init__(self, id: str = "watch") -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]
        self.outcomes: list[Outcome] = []
        self.told = anyio.Event()

    def bind(self, build: BuildContext) -> None:
        build.observe(self.note)

    def note(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    @property
    def only(self) -> Outcome:
        (outcome,) = self.outcomes
        return outcome


class Cached(Middleware):
    """Answers by itself where it has something; then the model is not asked."""

    may_answer = True

    def __init__(self, *stored: GenerateResult | None, id: str = "cached") -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]
        self.stored = list(stored)

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        found = self.stored.pop(0) if self.stored else None
        return await model.do_generate(options) if found is None else found

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        found = self.stored.pop(0) if self.stored else None
        return await model.do_stream(options) if found is None else StreamResult.of(found)


class Retry(Middleware):
    """Tries up to `times` times."""

    def __init__(self, times: int = 2, id: str = "retry") -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]
        self.times = times

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        for _ in range(self.times - 1):
            try:
                return await model.do_generate(options)
            except Exception:
                continue
        return await model.do_generate(options)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        for _ in range(self.times - 1):
            try:
                return await model.do_stream(options)
            except Exception:
                continue
        return await model.do_stream(options)


def chain(
    model: LanguageModel,
    members: Sequence[AnyMember | Use],
    *,
    watch: Watch | None = None,
    depth: int = 0,
    statistics: Statistics | None = None,
) -> LanguageModel:
    """Members in the order in which they are written, around them the watch, and `depth` layers further in."""
    return wrap_model(model, [*([watch] if watch else []), *members, *layers(depth)], statistics=statistics)


def watched(script: object, depth: int = 0) -> tuple[LanguageModel, Watch, ScriptedModel]:
    """A model that answers once, from a script, with a watch around it and `depth` layers between."""
    watch, inside = Watch(), ScriptedModel([script])  # type: ignore[list-item]
    return chain(inside, [], watch=watch, depth=depth), watch, inside


async def read(model: LanguageModel, options: CallOptions = ASKED) -> list[StreamPart]:
    async with (await model.do_stream(options)).stream as stream:
        return [part async for part in stream]


async def read_into(seen: list[StreamPart], stream: PartStream) -> None:
    async for part in stream:
        seen.append(part)


async def closed_while_read(stream: PartStream, *, after: int) -> None:
    """One task reads; when it has so many parts and waits for more, another closes. The reader is told."""
    seen: list[StreamPart] = []

    async def reader() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await read_into(seen, stream)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        await until(lambda: len(seen) == after)
        await stream.aclose()


async def run(model: LanguageModel, kind: Kind, options: CallOptions = ASKED) -> None:
    """One call, of either kind, to its end."""
    if kind == "generate":
        await model.do_generate(options)
    else:
        await read(model, options)


async def until(condition: Callable[[], object]) -> None:
    """Give the other tasks their turns until something has happened."""
    with anyio.fail_after(5):
        while not condition():
            await anyio.lowlevel.checkpoint()


async def collected(condition: Callable[[], object]) -> None:
    """The same, for what the garbage collector sets off."""
    gc.collect()
    await until(condition)


@contextmanager
def dropping() -> Iterator[None]:
    """Here streams are dropped on purpose, which is worth a ResourceWarning elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


def only_when(member: Middleware, **fields: object) -> Use:
    return Use(member, when=When(**fields))  # type: ignore[arg-type]


def hooked(generate: Hook, stream: Hook | None = None, id: str = "member") -> Member:
    """A member with a hook for each call, or one that answers both by generating."""

    async def streamed(model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(await generate(model, options))

    return Member(id, wrap_generate=generate, wrap_stream=stream or streamed, needs_scope=True)


def streaming(fn: Callable[[PartStream, CallOptions], AsyncIterator[StreamPart]], id: str = "member") -> Member:
    """A member that puts an async generator between the model's parts and the caller."""

    async def wrap(model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).through(lambda stream: fn(stream, options))

    return Member(id, wrap_stream=wrap, needs_scope=True)


class OwnFault(Exception):
    """A member's own, which no model raises."""


def skipped_generator(fn: Callable[[PartStream, CallOptions], AsyncIterator[StreamPart]]) -> Use:
    return Use(streaming(fn), on_error="skip")


def failing_after(count: int, *, taken: int = 0) -> Use:
    """Passes so many parts on, takes so many more, and fails."""

    async def pass_on(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        for _ in range(count):
            yield await anext(stream.__aiter__())
        for _ in range(taken):
            await anext(stream.__aiter__())
        raise OwnFault

    return skipped_generator(pass_on)


class Handler(Middleware):
    """Sees denials, as a fallback does: keeps what was denied, and says "instead" where `handles`."""

    sees_denials = True

    def __init__(self, *, handles: bool = True, id: str = "handler") -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]
        self.handles = handles
        self.seen: list[PolicyDenied] = []

    def _answer(self, error: PolicyDenied) -> GenerateResult:
        self.seen.append(error)
        if self.handles:
            return answer("instead")
        raise error

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            return await model.do_generate(options)
        except PolicyDenied as error:
            return self._answer(error)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        try:
            result = await model.do_stream(options)
            read = [part async for part in result.stream]
        except PolicyDenied as error:
            return StreamResult.of(self._answer(error))
        return StreamResult.of_parts(read)


def said(parts: Sequence[StreamPart]) -> str:
    """The text of a stream."""
    return "".join(part.delta for part in parts if isinstance(part, TextDelta))


async def text_of(model: LanguageModel, kind: Kind, options: CallOptions = ASKED) -> str:
    """What one call says, of either kind, read to its end."""
    return (await model.do_generate(options)).text if kind == "generate" else said(await read(model, options))


async def deny(model: LanguageModel, options: CallOptions) -> GenerateResult:
    raise options.context.deny("no", "I cannot.", by="policy")


async def answer_and_deny(model: LanguageModel, options: CallOptions) -> GenerateResult:
    await model.do_generate(options)
    raise options.context.deny("no", "I cannot.", by="policy")


def policy(hook: Hook = deny, id: str = "policy") -> Member:
    return hooked(hook, id=id)


async def swallow(model: LanguageModel, options: CallOptions) -> GenerateResult:
    try:
        return await model.do_generate(options)
    except BaseException:
        return answer("swallowed")


def denying_at(position: int, *, message: str = "I cannot.", id: str = "policy") -> Member:
    """Denies instead of the part at this position."""

    async def watch(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        index = 0
        async for part in stream:
            if index == position:
                raise options.context.deny("no", message, by=id)
            yield part
            index += 1
        if index <= position:
            raise options.context.deny("no", message, by=id)

    return streaming(watch, id)
