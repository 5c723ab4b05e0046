"""Native to V3: the events of a streamed message as stream parts. A state machine without I/O.

It keeps the grammar of `protocol/grammar.py`: one finish, last; blocks closed before it and never two of one id; the
reason stays `error` after an error part; a stream that is cut says so. Blocks are known by their index, and may
interleave. Usage is told at the start and again at the end, as totals.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, cast

import orjson

from ...errors import ProviderError
from ...protocol import INTERRUPTED, JSON, CallWarning, ErrorPart, Finish, FinishReason, Raw, StreamPart, StreamStart
from ...protocol.event_machine import parts_of_events
from ...protocol.parts import is_first_content
from ...structured import AnswerParts, answer_warnings
from ..common.readings import count, words
from ..common.sse import ServerSentEvent
from .errors import ErrorReader, is_error
from .open_blocks import Malformed, OpenBlocks
from .readings import (
    Head,
    Told,
    cuts,
    finish_reason,
    has_long_number,
    head_of,
    loose_json,
    provider_metadata,
    usage,
    with_later,
)
from .request import DEFAULT_PROVIDER, Expected

NativeEvent: TypeAlias = ServerSentEvent | Mapping[str, object] | str | bytes
"""An event as it was framed, its data alone, or an event that is already parsed."""


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
    machine = MessageStream(
        provider=provider, model_id=model_id, warnings=warnings, include_raw=include_raw, expected=expected
    )
    async for part in parts_of_events(machine, events):
        yield part


class MessageStream:
    """`start()`, then `feed(event)` for each event, then `finish()` at the source's end: each returns parts in order.

    `interrupt(error)` instead of `finish()` ends a stream whose source failed. `done`: the message has stopped, or the
    service said that it failed: nothing more is due. `begun`: content was made. provider, model_id, warnings,
    include_raw: as in `parse_stream`. expected: from `expected_of`. status, headers: of the HTTP answer, for errors
    that come inside it.
    """

    def __init__(
        self,
        *,
        provider: str = DEFAULT_PROVIDER,
        model_id: str | None = None,
        warnings: Sequence[CallWarning] = (),
        include_raw: bool = False,
        expected: Expected | None = None,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        errors: ErrorReader | None = None,
    ) -> None:
        expected = expected or Expected()
        self.done = False
        self.begun = False
        self._warnings = tuple(warnings)
        self._include_raw = include_raw
        self._status = status
        self._headers = headers
        self._errors = errors or ErrorReader(provider, model_id)
        self._no_calls = expected.no_calls
        self._answer = None if expected.answer is None else AnswerParts(expected.answer)
        self._is_plain = not include_raw and self._answer is None
        self._model_id = model_id
        self._head: Head | None = None
        self._failed = False
        self._over = False  # what comes after a failure of the service is not of this message
        self._finished = False
        self._blocks = OpenBlocks(expected)
        self._told: dict[str, object] = {}
        self._reason: str | None = None

    def start(self) -> list[StreamPart]:
        """The part that opens the stream."""
        return [StreamStart(self._warnings)]

    def feed(self, event: NativeEvent) -> list[StreamPart]:
        """The parts that one event makes: none, where it says nothing new or is of an unknown kind."""
        name, data = "", event
        if event.__class__ is ServerSentEvent:
            name, data = event.event, event.data
        if isinstance(data, str | bytes):
            try:
                native = orjson.loads(data)
            except orjson.JSONDecodeError:
                return self._odd_data(data, name)
        else:
            native = data
        # Nearly every event is a piece of a block that has begun: it goes past the general reading.
        if (
            native.__class__ is dict
            and (delta := native.get("delta")).__class__ is dict
            and self._is_plain
            and (index := native.get("index")).__class__ is int
            and (block := self._blocks.by_index.get(index)) is not None
            and native.get("type") == "content_block_delta"
        ):
            parts = block.delta(delta)
            if parts is not None:
                if parts:
                    self.begun = True
                return parts
        if isinstance(data, str | bytes) and has_long_number(data):  # which the quick parser has made a float of
            return self._odd_data(data, name)
        return self._event(native, name)

    def finish(self, unfinished: bytes | None = None) -> list[StreamPart]:
        """The source has ended. unfinished: the data of a last event without its empty line, from the framing.

        That event is dropped, as the standard has it, and shows that the stream was cut: unless it was the last one.
        """
        if unfinished and not self.done and _kind_of(unfinished) == "message_stop":
            self.done = True
        if not self.done and not self._failed:
            return self.interrupt(self._errors.interrupted(_CUT, status=self._status))
        parts = self._close(whole=not self._failed)
        answered = self._answer is not None and self._answer.answered
        return self._finish(parts, finish_reason(self._reason, failed=self._failed, answered=answered))

    def interrupt(self, error: ProviderError) -> list[StreamPart]:
        """The source failed with `error`: close what is open, tell it, and finish. Half a tool call is not passed on.

        Of several errors the first is told: what breaks after a provider has said that it failed is no news.
        """
        parts = self._close(whole=False)
        reason = finish_reason(self._reason, failed=True)
        if not self._failed:
            self._failed = True
            parts.append(ErrorPart(error))
            reason = INTERRUPTED
        return self._finish(parts, reason)

    # ---------------------------------------------------------------------------------------------------- events

    def _event(self, native: object, name: str) -> list[StreamPart]:
        parts: list[StreamPart] = [Raw(cast(JSON, native))] if self._include_raw else []
        if self._over:
            return parts
        try:
            if not isinstance(native, Mapping):
                raise Malformed("an event of the stream is not an object")
            kind = native.get("type", name)
            known = _EVENTS.get(kind) if isinstance(kind, str) else None
            if known is not None:
                known(self, native, parts)
            elif kind == "error" or is_error(native):
                self._fail(native, parts)
        except RecursionError:
            self._malformed(None, "an event of the stream is nested too deeply", parts)
        except Malformed as fault:
            self._malformed(native, str(fault), parts)
        if not self.begun:
            self.begun = any(map(is_first_content, parts))
        return parts if self._answer is None else self._answer.feed(parts, text_id=self._blocks.answer_id)

    def _message_start(self, native: Mapping[str, object], parts: list[StreamPart]) -> None:
        message = native.get("message")
        if not isinstance(message, Mapping):
            raise Malformed("the start of the stream holds no message")
        head = head_of(message, self._model_id)
        if self._head is not None:
            if self._head.id != head.id:
                self._end_here()
                raise Malformed("a second message began in the stream")
            return
        self._head = head
        self._told.update(message)
        self._reason = words(message.get("stop_reason"))
        parts.append(head.part())
        content = message.get("content")
        # Where the model goes on with an answer that had stopped, the API may give the start of it here.
        for number, block in enumerate(content if isinstance(content, list | tuple) else ()):
            self._blocks.add_whole(number, block, parts)

    def _block_start(self, native: Mapping[str, object], parts: list[StreamPart]) -> None:
        block = native.get("content_block")
        self._blocks.begin(_index(native), block, parts, whole=not self._failed)
        if isinstance(block, Mapping) and block.get("type") == "fallback":
            self._hand_over(block.get("to"), parts)

    def _block_delta(self, native: Mapping[str, object], parts: list[StreamPart]) -> None:
        delta = native.get("delta")
        if not isinstance(delta, Mapping):
            raise Malformed("a block delta of the stream holds no delta")
        self._blocks.delta(_index(native), delta, parts)

    def _block_stop(self, native: Mapping[str, object], parts: list[StreamPart]) -> None:
        self._blocks.end(_index(native), parts, whole=not self._failed)  # a piece of it may have been lost

    def _message_delta(self, native: Mapping[str, object], parts: list[StreamPart]) -> None:
        delta = native.get("delta")
        said = {**native, **(delta if isinstance(delta, Mapping) else {})}
        told = with_later(self._told.get("usage"), said.pop("usage", None))
        self._told.update({name: item for name, item in said.items() if item is not None})
        self._told["usage"] = told
        reason = words(said.get("stop_reason"))
        if reason is not None:
            self._reason = reason
            self._blocks.end_empty(parts, whole=not self._failed, cut=cuts(reason))

    def _message_stop(self, native: Mapping[str, object], parts: list[StreamPart]) -> None:
        self.done = True

    def _hand_over(self, to: object, parts: list[StreamPart]) -> None:
        """The model that goes on with the answer is the one that gave it, as a whole message says too."""
        model_id = words(to.get("model")) if isinstance(to, Mapping) else None
        if model_id is not None and self._head is not None:
            self._head = self._head._replace(model_id=model_id)
            parts.append(self._head.part())

    # ---------------------------------------------------------------------------------------------------- failures

    def _odd_data(self, data: bytes | str, name: str) -> list[StreamPart]:
        """Data that the strict parser refuses: nothing, an error in words, JSON with loose ends, or no JSON."""
        text = (data.decode("utf-8", "replace") if isinstance(data, bytes) else data).strip()
        if not text or text == "[DONE]":  # what some gateways end every stream with
            return []
        try:
            native = loose_json(text)
        except ValueError:
            parts: list[StreamPart] = [Raw(text)] if self._include_raw else []
            if self._over:
                return parts
            if name == "error":
                self._fail({"type": "error", "error": {"message": text}}, parts)
            else:
                self._malformed(text, "an event of the stream is not JSON", parts)
            return parts
        return self._event(native, name)

    def _fail(self, native: Mapping[str, object], parts: list[StreamPart]) -> None:
        """The service says that it failed."""
        self._end_here()
        self.done = True
        if not self._failed:
            self._failed = True
            parts.append(ErrorPart(self._errors.of_object(native, status=self._status, headers=self._headers)))

    def _malformed(self, native: object, what: str, parts: list[StreamPart]) -> None:
        """Of several errors the first is told: those after it follow from it."""
        if not self._failed:
            self._failed = True
            error = self._errors.malformed(what, native, status=self._status, headers=self._headers)
            parts.append(ErrorPart(error))

    def _end_here(self) -> None:
        """What follows is no part of the answer."""
        self._over = True
        self._is_plain = False

    # ---------------------------------------------------------------------------------------------------- the end

    def _close(self, *, whole: bool) -> list[StreamPart]:
        parts: list[StreamPart] = []
        self._blocks.close(parts, whole=whole, cut=cuts(self._reason))
        if self._answer is None:
            return parts
        ended = whole and not cuts(self._reason)
        return self._answer.feed(parts, text_id=self._blocks.answer_id) + self._answer.end(ended)

    def _finish(self, parts: list[StreamPart], reason: FinishReason) -> list[StreamPart]:
        if self._finished:
            return []
        self._finished = True
        answer = self._answer
        has_calls = self._blocks.has_calls if answer is None else answer.has_calls
        unexecuted = () if answer is None else answer.unexecuted
        warnings = answer_warnings(reason, answer, unwanted=self._no_calls and has_calls)
        metadata = provider_metadata(Told(self._told, unexecuted, warnings))
        parts.append(Finish(reason, usage(self._told.get("usage")), metadata))
        return parts


_EVENTS: Mapping[str, Callable[[MessageStream, Mapping[str, object], list[StreamPart]], None]] = {
    "message_start": MessageStream._message_start,
    "content_block_start": MessageStream._block_start,
    "content_block_delta": MessageStream._block_delta,
    "content_block_stop": MessageStream._block_stop,
    "message_delta": MessageStream._message_delta,
    "message_stop": MessageStream._message_stop,
}


def _index(native: Mapping[str, object]) -> int:
    index = count(native.get("index"))
    if index is None:
        raise Malformed("a block's event of the stream has no index")
    return index


def _kind_of(data: bytes) -> object:
    try:
        native = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return native.get("type") if isinstance(native, dict) else None


_CUT = "the stream ended before the message had stopped"
"""Why a stream without its last event is an error."""
