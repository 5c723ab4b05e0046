"""Native to V3: the events of `converse_stream` as stream parts. A state machine without I/O.

It keeps the grammar of `protocol/grammar.py`: one finish, last; blocks closed before it and never two of one id; the
reason stays `error` after an error part; a stream that is cut says so. Converse tells the usage after the reason, so
the finish waits for the end of the events. Text blocks have no start event: the first delta of an index opens one.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, cast

from ...errors import ProviderError
from ...protocol import (
    INTERRUPTED,
    JSON,
    CallWarning,
    ErrorPart,
    Finish,
    FinishReason,
    JSONObject,
    Raw,
    StreamPart,
    StreamStart,
    TextDelta,
)
from ...protocol.event_machine import parts_of_events
from ...structured import AnswerParts, answer_warnings
from ..common.readings import AnswerIds, words
from .capabilities import capabilities_of
from .errors import ErrorReader, error_kind
from .native_values import stored
from .readings import UNKNOWN_MEMBER, SourceReader, Told, cuts, finish_reason, head_of, provider_metadata, usage
from .request import DEFAULT_PROVIDER, Expected
from .stream_blocks import (
    CallBlock,
    ForeignBlock,
    ImageBlock,
    OpenBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
    says_nothing,
)
from .tool_ids import NativeIds

NativeEvent: TypeAlias = Mapping[str, object]
"""An event as botocore gives it: its name to its payload."""


async def parse_stream(
    events: AsyncIterable[NativeEvent] | Iterable[NativeEvent],
    *,
    provider: str = DEFAULT_PROVIDER,
    model_id: str | None = None,
    warnings: Sequence[CallWarning] = (),
    include_raw: bool = False,
    expected: Expected | None = None,
) -> AsyncIterator[StreamPart]:
    """The parts of a stream, from stream-start to finish, made from its events.

    What goes wrong is an error part here, at the very beginning too: `do_stream` raises what comes before content.
    """
    machine = ConverseStream(
        provider=provider, model_id=model_id, warnings=warnings, include_raw=include_raw, expected=expected
    )
    async for part in parts_of_events(machine, events):
        yield part


class ConverseStream:
    """`start()`, then `feed(event)` for each event, then `finish()` at the source's end: each returns parts in order.

    `interrupt(error)` instead of `finish()` ends a stream whose source failed. `done`: reason and usage were told, so
    that nothing more is due; what follows is still read. `begun`: content was made. provider, model_id, warnings,
    include_raw: as in `parse_stream`. expected: from `expected_of`. metadata: the `ResponseMetadata` of the call.
    """

    def __init__(
        self,
        *,
        provider: str = DEFAULT_PROVIDER,
        model_id: str | None = None,
        warnings: Sequence[CallWarning] = (),
        include_raw: bool = False,
        expected: Expected | None = None,
        metadata: Mapping[str, object] | None = None,
        errors: ErrorReader | None = None,
    ) -> None:
        self.done = False
        self.begun = False
        self._warnings = tuple(warnings)
        self._include_raw = include_raw
        self._expected = expected or Expected()
        self._head = head_of(metadata, model_id)
        self._errors = errors or ErrorReader(provider, model_id)
        self._failed = False
        self._finished = False
        self._blocks: dict[int, OpenBlock] = {}
        self._ids = AnswerIds()
        self._native_ids = NativeIds(capabilities_of(model_id or "").short_ids)
        self._calls: dict[str, tuple[str, str]] = {}
        self._sources = SourceReader()
        self._citations: dict[int, list[JSON]] = {}
        self._has_calls = False
        answer = self._expected.answer
        self._answer = None if answer is None else AnswerParts(answer)
        self._answer_id: str | None = None  # of its text
        self._is_plain = not include_raw and answer is None
        self._told: dict[str, object] = {}
        self._has_usage = False
        self._reason: str | None = None

    def start(self) -> list[StreamPart]:
        """The parts that open the stream: what could not be done as asked, and who answers."""
        return [StreamStart(self._warnings), self._head.part()]

    def feed(self, event: NativeEvent) -> list[StreamPart]:
        """The parts that one event makes: none, where it says nothing new or is of an unknown kind."""
        if self._is_plain:
            # Nearly every event is a piece of a text that has begun: it goes past the general reading.
            delta = event.get("contentBlockDelta")
            if delta.__class__ is dict:
                index = delta.get("contentBlockIndex")
                if index.__class__ is int and (block := self._blocks.get(index)).__class__ is TextBlock:
                    piece = delta.get("delta")
                    if (
                        piece.__class__ is dict
                        and len(piece) == 1
                        and (text := piece.get("text")).__class__ is str
                        and text
                    ):
                        return [TextDelta(block.id, text)]
        return self._event(event)

    def finish(self, unfinished: bytes | None = None) -> list[StreamPart]:
        """The source has ended. unfinished: of no use here, botocore has taken the frames apart."""
        if self._reason is None and not self._failed:
            return self.interrupt(self._errors.interrupted(_CUT))
        parts = self._close_blocks(whole=not self._failed)
        answered = self._answer is not None and self._answer.answered
        return self._finish(parts, finish_reason(self._reason, failed=self._failed, answered=answered))

    def interrupt(self, error: ProviderError) -> list[StreamPart]:
        """The source failed with `error`: close what is open, tell it, and finish. Half a tool call is not passed on.

        Of several errors the first is told: what breaks after a service has said that it failed is no news.
        """
        parts = self._close_blocks(whole=False)
        reason = finish_reason(self._reason, failed=True)
        if not self._failed:
            self._failed = True
            parts.append(ErrorPart(error))
            reason = INTERRUPTED
        return self._finish(parts, reason)

    # ---------------------------------------------------------------------------------------------------- events

    def _event(self, event: NativeEvent) -> list[StreamPart]:
        parts: list[StreamPart] = [Raw(cast(JSON, dict(event)))] if self._include_raw else []
        for name, payload in event.items():
            known = _EVENTS.get(name)
            if known is None:
                if name != UNKNOWN_MEMBER and (name.lower().endswith("exception") or error_kind(name) is not None):
                    parts.append(self._failure(name, payload))
            elif not isinstance(payload, Mapping):
                parts.append(self._malformed(f"{name} of the stream is of type {type(payload).__name__}"))
            else:
                parts.extend(known(self, payload))
        return parts if self._answer is None else self._answer.feed(parts, text_id=self._answer_id)

    def _message_start(self, payload: Mapping[str, object]) -> list[StreamPart]:
        return []

    def _block_start(self, payload: Mapping[str, object]) -> list[StreamPart]:
        index, start = _index(payload), payload.get("start")
        if index is None:
            return [self._malformed("a block start of the stream has no index")]
        if not isinstance(start, Mapping) or not start:
            return []  # an empty start says nothing of the kind: the first delta will
        kind = next(iter(start))
        body = start[kind]
        closed = self._close(index)
        if kind == "toolUse" and isinstance(body, Mapping):
            return [*closed, *self._start_call(index, body)]
        if kind == "toolResult" and isinstance(body, Mapping):
            native_id = words(body.get("toolUseId")) or ""
            return closed + self._open(index, ResultBlock(body, *self._calls.get(native_id, (native_id, ""))))
        if kind == "image" and isinstance(body, Mapping):
            return closed + self._open(index, ImageBlock(body))
        if kind == "text":
            return closed + self._open(index, self._text(index))
        return closed + self._open(index, ForeignBlock(kind, body))

    def _start_call(self, index: int, use: Mapping[str, object]) -> list[StreamPart]:
        name = words(use.get("name"))
        if name is None:
            return [self._malformed("a tool use of the stream names no tool")]
        of_server = words(use.get("type")) is not None
        if self._expected.answer is not None and name == self._expected.answer.name and not of_server:
            self._answer_id = self._ids.take(str(index))
        native_id = words(use.get("toolUseId")) or f"call-{len(self._calls)}"
        id = self._ids.take(self._native_ids.of(native_id))
        name = self._expected.tool_names.get(name, name)
        self._calls[native_id] = id, name
        self._has_calls = self._has_calls or not of_server
        return self._open(index, CallBlock(id, name, of_server))

    def _block_delta(self, payload: Mapping[str, object]) -> list[StreamPart]:
        index, delta = _index(payload), payload.get("delta")
        if index is None or not isinstance(delta, Mapping):
            return [self._malformed("a block delta of the stream has no index or no delta")]
        parts: list[StreamPart] = []
        for kind, piece in delta.items():
            if kind == "citation":
                parts.extend(self._cite(index, piece))
                continue
            block = self._blocks.get(index)
            if block is None or block.kind != kind:
                if kind == "toolUse":
                    parts.append(self._malformed("a piece of a tool use came without its beginning"))
                    continue
                if says_nothing(kind, piece):
                    continue  # it would open a block that may stay empty
                parts.extend(self._close(index))
                block = self._block_of(index, kind)
                parts.extend(self._open(index, block))
            parts.extend(block.delta(piece))
        return parts

    def _block_of(self, index: int, kind: str) -> OpenBlock:
        if kind == "text":
            return self._text(index)
        if kind == "reasoningContent":
            return ReasoningBlock(self._ids.take(str(index)))
        if kind == "image":
            return ImageBlock({})
        return ForeignBlock(kind, None)

    def _text(self, index: int) -> TextBlock:
        return TextBlock(self._ids.take(str(index)), self._citations.setdefault(index, []))

    def _cite(self, index: int, citation: object) -> list[StreamPart]:
        source = self._sources.read(citation)
        if source is None:
            return []
        self._citations.setdefault(index, []).append(stored(citation))
        self.begun = True
        return [source]

    def _block_stop(self, payload: Mapping[str, object]) -> list[StreamPart]:
        index = _index(payload)
        if index is None:
            return [self._malformed("a block stop of the stream has no index")]
        return self._close(index)

    def _message_stop(self, payload: Mapping[str, object]) -> list[StreamPart]:
        reason = payload.get("stopReason")
        if not isinstance(reason, str):
            return [self._malformed("the end of the message gives no reason")]
        self._reason = reason
        self._told.update(payload)
        self.done = self._has_usage
        return []

    def _metadata(self, payload: Mapping[str, object]) -> list[StreamPart]:
        self._told.update(payload)
        self._has_usage = True
        self.done = self._reason is not None
        return []

    # ---------------------------------------------------------------------------------------------------- failures

    def _failure(self, name: str, payload: object) -> StreamPart:
        self._failed = True
        said = payload if isinstance(payload, Mapping) else {}
        message = words(said.get("message")) or words(said.get("originalMessage"))
        status = said.get("originalStatusCode")
        original = status if isinstance(status, int) and not isinstance(status, bool) else None
        return ErrorPart(self._errors.of_event(name, message, original_status=original))

    def _malformed(self, what: str) -> StreamPart:
        self._failed = True
        return ErrorPart(self._errors.malformed(what, status=self._head.status, request_id=self._head.id))

    # ---------------------------------------------------------------------------------------------------- blocks

    def _open(self, index: int, block: OpenBlock) -> list[StreamPart]:
        self._blocks[index] = block
        start = block.start()
        if start is None:
            return []
        self.begun = True
        return [start]

    def _close(self, index: int, *, whole: bool = True) -> list[StreamPart]:
        block = self._blocks.pop(index, None)
        if isinstance(block, TextBlock):
            self._citations.pop(index, None)
        return [] if block is None else block.end(whole=whole)

    def _close_blocks(self, *, whole: bool) -> list[StreamPart]:
        parts = [part for index in list(self._blocks) for part in self._close(index, whole=whole)]
        if self._answer is None:
            return parts
        ended = whole and not cuts(self._reason)
        return [*self._answer.feed(parts, text_id=self._answer_id), *self._answer.end(ended)]

    def _finish(self, parts: list[StreamPart], reason: FinishReason) -> list[StreamPart]:
        if self._finished:
            return []
        self._finished = True
        answer = self._answer
        has_calls = self._has_calls if answer is None else answer.has_calls
        unexecuted = () if answer is None else answer.unexecuted
        warnings = answer_warnings(reason, answer, unwanted=self._expected.no_calls and has_calls)
        answered = answer is not None and answer.answered
        metadata: JSONObject = provider_metadata(Told(self._told, answered, warnings, unexecuted))
        parts.append(Finish(reason, usage(self._told.get("usage")), metadata))
        return parts


_EVENTS: Mapping[str, Callable[[ConverseStream, Mapping[str, object]], list[StreamPart]]] = {
    "messageStart": ConverseStream._message_start,
    "contentBlockStart": ConverseStream._block_start,
    "contentBlockDelta": ConverseStream._block_delta,
    "contentBlockStop": ConverseStream._block_stop,
    "messageStop": ConverseStream._message_stop,
    "metadata": ConverseStream._metadata,
}


def _index(payload: Mapping[str, object]) -> int | None:
    index = payload.get("contentBlockIndex")
    return index if isinstance(index, int) and not isinstance(index, bool) else None


_CUT = "the stream ended before the model said why it stopped"
