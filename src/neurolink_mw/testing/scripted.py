"""A model that answers from a script and remembers what it was asked: the test double for everything model-shaped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio

from ..protocol import (
    SPECIFICATION_VERSION,
    CallOptions,
    Closer,
    GenerateResult,
    Kind,
    PartStream,
    StreamPart,
    StreamResult,
    SupportedUrls,
    Text,
    Value,
    collect,
    from_json,
    parts_of,
)


@dataclass(frozen=True)
class Pause:
    """In a script: wait so many seconds; without a number, until the stream is closed or the task cancelled."""

    seconds: float | None = None


HOLD = Pause()
"""A pause that only a close or a cancellation ends."""

ScriptedPart: TypeAlias = "StreamPart | Mapping[str, object] | Pause | BaseException"
Reply: TypeAlias = "str | GenerateResult | Mapping[str, object] | Sequence[ScriptedPart] | BaseException"
ScriptedReply: TypeAlias = "Reply | Callable[[CallOptions], Reply]"


@dataclass
class ScriptedCall:
    """One call that the model got. For a stream: `read`, how many parts were taken; `closed`, how often it was closed;
    `ended`, whether it was read to its end."""

    kind: Kind
    options: CallOptions
    read: int = 0
    closed: int = 0
    ended: bool = False
    _closing: anyio.Event = field(default_factory=anyio.Event, repr=False)


class ScriptedModel:
    """Answers call after call from `replies`; `calls` holds what it was asked.

    A reply is a text, a `GenerateResult` or its JSON, a list of stream parts, or an exception to raise; or a function
    of the options that returns one of these. Parts may be their JSON; an exception in a list is raised at that point,
    and a `Pause` waits there. Any reply serves both calls: a list is added up for `do_generate`, a result is replayed
    for `do_stream`. `repeat` starts over at the end of the script; otherwise one call too many is an AssertionError.
    """

    specification_version = SPECIFICATION_VERSION

    def __init__(
        self,
        replies: Sequence[ScriptedReply] | str,
        *,
        provider: str = "scripted",
        model_id: str = "scripted-1",
        supported_urls: SupportedUrls | None = None,
        repeat: bool = False,
        delay: float = 0.0,
    ) -> None:
        self._replies: list[ScriptedReply] = [replies] if isinstance(replies, str) else list(replies)
        self._repeat = repeat
        self._delay = delay
        self.provider = provider
        self.model_id = model_id
        self.supported_urls = supported_urls or {}
        self.calls: list[ScriptedCall] = []

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        call, reply = self._next("generate", options)
        if self._delay:
            await anyio.sleep(self._delay)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, GenerateResult):
            return reply
        parts = []
        async for part in _play(reply, call, None):
            parts.append(part)
        return collect(parts)

    async def do_stream(self, options: CallOptions) -> StreamResult:
        call, reply = self._next("stream", options)
        if self._delay:
            await anyio.sleep(self._delay)
        if isinstance(reply, BaseException):
            raise reply

        async def close() -> None:
            call.closed += 1
            call._closing.set()

        script = tuple(parts_of(reply)) if isinstance(reply, GenerateResult) else reply
        request, response = (reply.request, reply.response) if isinstance(reply, GenerateResult) else (None, None)
        closer = Closer(close)
        return StreamResult(PartStream(_play(script, call, closer), close=closer), request, response)

    def _next(
        self, kind: Kind, options: CallOptions
    ) -> tuple[ScriptedCall, GenerateResult | BaseException | Sequence[ScriptedPart]]:
        index = len(self.calls)
        call = ScriptedCall(kind, options)
        self.calls.append(call)
        if self._repeat and self._replies:
            index %= len(self._replies)
        if index >= len(self._replies):
            raise AssertionError(f"ScriptedModel got call {index + 1}, and its script has {len(self._replies)} replies")
        reply = self._replies[index]
        return call, _normal(reply(options) if callable(reply) else reply)

    def __repr__(self) -> str:
        return f"ScriptedModel({self.provider}:{self.model_id}, {len(self.calls)} calls)"


def _normal(reply: Reply) -> GenerateResult | BaseException | Sequence[ScriptedPart]:
    if isinstance(reply, str):
        return GenerateResult((Text(reply),))
    if isinstance(reply, Mapping):
        return from_json(GenerateResult, reply)
    return reply


async def _play(script: Sequence[ScriptedPart], call: ScriptedCall, closer: Closer | None) -> AsyncIterator[StreamPart]:
    for step in script:
        if isinstance(step, BaseException):
            if closer is not None:
                await closer()
            raise step
        if isinstance(step, Pause):
            await _pause(step, call)
            continue
        call.read += 1
        yield step if isinstance(step, Value) else from_json(StreamPart, step)
    call.ended = True
    if closer is not None:
        await closer()


async def _pause(pause: Pause, call: ScriptedCall) -> None:
    if pause.seconds is not None:
        await anyio.sleep(pause.seconds)
        return
    await call._closing.wait()
    raise anyio.ClosedResourceError
