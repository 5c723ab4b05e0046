"""The middleware under test: fresh ones in fresh chains, and what comes of each call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio

from ...errors import ConfigError, NeurolinkError, ProtocolError
from ...events import Decision, Finding, MemberFailed
from ...pipeline import BuildContext, Member, Middleware, Outcome, Surroundings, explain, wrap_model
from ...protocol import (
    CallOptions,
    GenerateResult,
    Kind,
    LanguageModel,
    RequestInfo,
    ResponseInfo,
    StreamPart,
    StreamResult,
    collect,
)
from ..scripted import ScriptedCall, ScriptedReply
from .upstream import Upstream
from .wording import require, show_answer, show_error, show_parts

WATCH = "contract_watch"


class Watch(Middleware):
    """Is told how the calls of a chain end."""

    id = WATCH
    outcomes: list[Outcome]

    def bind(self, build: BuildContext) -> None:
        self.outcomes = []
        build.observe(self.outcomes.append)


@dataclass(frozen=True)
class Seen:
    """One call, as its caller saw it. `parts` of a stream, `answer` whole or added up, `raised` in either way;
    `calls`: what the model was asked for it; `closings`: how often each stream of the model was closed; `request` and
    `response`: what came beside the answer."""

    kind: Kind
    answer: GenerateResult | None
    parts: tuple[StreamPart, ...]
    raised: Exception | None
    outcomes: tuple[Outcome, ...]
    calls: tuple[ScriptedCall, ...]
    closings: tuple[int, ...]
    request: RequestInfo | None = None
    response: ResponseInfo | None = None

    @property
    def status(self) -> str:
        return self.outcomes[-1].status if self.outcomes else "none"

    @property
    def denied(self) -> bool:
        return self.status == "denied"

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.outcomes[-1].findings if self.outcomes else ()

    @property
    def refused_a_part(self) -> bool:
        """A policy that refuses a tool call takes it out of the answer, which is otherwise let pass."""
        return any(isinstance(finding, Decision) and finding.action == "denied" for finding in self.findings)

    @property
    def answered(self) -> GenerateResult | None:
        """The answer, where it is one: neither a failure nor a refusal."""
        return None if self.raised is not None or self.denied else self.answer

    def __str__(self) -> str:
        if self.denied:
            return f"refused ({self.answer and show_answer(self.answer)})"
        if self.raised is not None:
            before = f"{show_parts(self.parts)}, then " if self.parts else ""
            return f"{before}{show_error(self.raised)}"
        return show_answer(self.answer) if self.answer is not None else "nothing"


class Trial:
    """One member in one chain, around one scripted model, with `inner` members between the two."""

    def __init__(
        self, member: Member, upstream: Upstream, surroundings: Surroundings | None, inner: Sequence[Member] = ()
    ) -> None:
        self.upstream = upstream
        self._watch = Watch()
        members = [self._watch, member, *inner]
        # What stands further in is ours: no order of the two is wrong.
        self.model: LanguageModel = wrap_model(
            upstream, members, surroundings=surroundings, lint="off" if inner else "error"
        )

    @property
    def outcomes(self) -> list[Outcome]:
        return self._watch.outcomes

    async def generate(self, options: CallOptions) -> Seen:
        """One whole call. Cancellations pass; every other failure is part of what is seen."""
        before = self._counts()
        answer, raised = None, None
        try:
            answer = await self.model.do_generate(options)
        except Exception as error:
            raised = error
        return self._seen("generate", answer, (), raised, before, answer)

    async def stream(self, options: CallOptions, *, leave_after: int | None = None) -> Seen:
        """One stream, read to its end, or left after so many parts: 0 leaves it unread."""
        before = self._counts()
        parts: list[StreamPart] = []
        result, raised = None, None
        try:
            result = await self.model.do_stream(options)
            await _read(result, parts, leave_after)
        except Exception as error:
            raised = error
        return self._seen("stream", collect(parts), tuple(parts), raised, before, result)

    async def ask(self, kind: Kind, options: CallOptions) -> Seen:
        return await (self.generate(options) if kind == "generate" else self.stream(options))

    def _counts(self) -> tuple[int, int, int]:
        return len(self.outcomes), len(self.upstream.calls), len(self.upstream.closings())

    def _seen(
        self,
        kind: Kind,
        answer: GenerateResult | None,
        parts: tuple[StreamPart, ...],
        raised: Exception | None,
        before: tuple[int, int, int],
        result: GenerateResult | StreamResult | None,
    ) -> Seen:
        outcomes, calls, opened = before
        return Seen(
            kind,
            answer,
            parts,
            raised,
            tuple(self.outcomes[outcomes:]),
            tuple(self.upstream.calls[calls:]),
            self.upstream.closings()[opened:],
            None if result is None else result.request,
            None if result is None else result.response,
        )


async def _read(result: StreamResult, parts: list[StreamPart], leave_after: int | None) -> None:
    async with result.stream as stream:
        if leave_after is None:
            async for part in stream:
                parts.append(part)
        else:
            with suppress(StopAsyncIteration):
                while len(parts) < leave_after:
                    parts.append(await stream.__anext__())


@dataclass(frozen=True)
class Subject:
    """What the suite was given, and the ways in which checks use it."""

    factory: Callable[[], Member]
    options: CallOptions
    answers: tuple[GenerateResult, ...]
    surroundings: Surroundings | None

    @property
    def may_answer(self) -> bool:
        return self.factory().may_answer

    def trial(self, member: Member, replies: Sequence[ScriptedReply], model_id: str = "scripted-1") -> Trial:
        return Trial(member, Upstream(replies, model_id), self.surroundings)

    @asynccontextmanager
    async def fresh(self, *replies: ScriptedReply, inner: Sequence[Member] = ()) -> AsyncIterator[Trial]:
        """A fresh member around a model that plays these replies."""
        member = self.factory()
        async with opened(member):
            trial = Trial(member, Upstream(replies), self.surroundings, inner)
            try:
                yield trial
            finally:
                await trial.upstream.close_what_is_left()

    async def ask(self, kind: Kind, *replies: ScriptedReply) -> Seen:
        """One call of a fresh member, to its end."""
        async with self.fresh(*replies) as trial:
            return await trial.ask(kind, self.options)

    def wraps_one_call_only(self) -> str:
        """Advice for a member that fills in one of the two hooks; empty for all others."""
        model = Trial(self.factory(), Upstream([""]), self.surroundings).model
        hooks = {hook for member in explain(model).members if member.id != WATCH for hook in member.hooks}
        for one, other in (("wrap_generate", "wrap_stream"), ("wrap_stream", "wrap_generate")):
            if one in hooks and other not in hooks:
                return f"It fills in {one} and not {other}, so that half of all calls pass it by: fill in both."
        return ""


@asynccontextmanager
async def opened(member: Member) -> AsyncIterator[None]:
    """A member as an open pipeline has it: with a task group for its background work."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        await member.open(tasks)
        try:
            yield
        except Exception as error:  # the group would wrap it in another
            failure = error
        finally:
            await member.aclose()
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def require_no_failure_of_its_own(
    raised: Exception | None, findings: Iterable[Finding], fed: str, advice: str = "Make it cope with every answer"
) -> None:
    """The model did nothing wrong: what fails now is the member, or refuses on purpose."""
    for finding in findings:
        if isinstance(finding, MemberFailed):
            raise AssertionError(
                f"{fed}: it failed by itself ({finding.error}), which its place then handled. {advice}, or refuse on "
                f"purpose"
            )
    on_purpose = isinstance(raised, NeurolinkError) and not isinstance(raised, ConfigError | ProtocolError)
    require(
        raised is None or on_purpose,
        f"{fed}: it raised {show_error(raised)}, and the model did nothing wrong. {advice}; what it refuses on "
        f"purpose, it refuses with `raise options.context.deny(...)` or a NeurolinkError",
    )
