"""Native to V3: the events of a streamed chat completion as stream parts. A state machine without I/O.

It keeps the grammar of `protocol/grammar.py`: one finish, last; blocks closed before it and never two of one id; the
reason stays `error` after an error part; a stream that is cut says so. OpenAI has no event for the end of a block:
text ends where reasoning begins and the other way round, everything else at the end of the stream.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import orjson

from ...errors import ProviderError
from ...protocol import (
    INTERRUPTED,
    JSON,
    CallWarning,
    ErrorPart,
    Finish,
    JSONObject,
    Raw,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from ...protocol.event_machine import parts_of_events
from ..common.readings import words
from ..common.sse import ServerSentEvent
from .errors import ErrorReader, error_object
from .readings import (
    CallIds,
    SourceReader,
    audio_file,
    finish_reason,
    images,
    loose_json,
    provider_metadata,
    text_pieces,
    timestamp,
    usage,
)
from .request import DEFAULT_PROVIDER
from .tool_deltas import ToolDeltas

DONE: Final = b"[DONE]"

NativeEvent: TypeAlias = ServerSentEvent | Mapping[str, object] | str | bytes
"""An event as it was framed, its data alone, or a chunk that is already parsed."""

_PLAIN = frozenset({"content", "role", "reasoning_content", "reasoning"})


async def parse_stream(
    events: AsyncIterable[NativeEvent] | Iterable[NativeEvent],
    *,
    provider: str = DEFAULT_PROVIDER,
    model_id: str | None = None,
    warnings: Sequence[CallWarning] = (),
    include_raw: bool = False,
) -> AsyncIterator[StreamPart]:
    """The parts of a stream, from stream-start to finish, made from its events.

    What goes wrong is an error part here, at the very beginning too: `do_stream` raises what comes before content.
    """
    machine = ChatStream(provider=provider, model_id=model_id, warnings=warnings, include_raw=include_raw)
    async for part in parts_of_events(machine, events):
        yield part


class ChatStream:
    """`start()`, then `feed(event)` for each event, then `finish()` at the source's end: each returns parts in order.

    `interrupt(error)` instead of `finish()` ends a stream whose source failed. `done`: the server has sent `[DONE]`;
    what follows is still read. `begun`: content was made. provider, warnings: as in `parse_stream`. audio_type: the
    media type of spoken answers. status, headers: of the HTTP answer, for errors that come inside it.
    """

    def __init__(
        self,
        *,
        provider: str = DEFAULT_PROVIDER,
        model_id: str | None = None,
        warnings: Sequence[CallWarning] = (),
        include_raw: bool = False,
        audio_type: str = "audio/wav",
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        errors: ErrorReader | None = None,
    ) -> None:
        self.done = False
        self.begun = False
        self._provider = provider
        self._warnings = tuple(warnings)
        self._include_raw = include_raw
        self._audio_type = audio_type
        self._status = status
        self._headers = headers
        self._errors = errors or ErrorReader(provider, model_id)
        self._described = False
        self._failed = False
        self._finished = False
        self._ids: set[str] = set()
        self._text_id: str | None = None
        self._reasoning_id: str | None = None
        self._refusal: list[str] = []
        self._tools: ToolDeltas | None = None
        self._sources = SourceReader(provider)
        self._audio: dict[str, JSON] = {}
        self._audio_data: list[str] = []
        self._usage: Mapping[str, JSON] | None = None
        self._reason: str | None = None

    def start(self) -> list[StreamPart]:
        """The part that opens the stream."""
        return [StreamStart(self._warnings)]

    def feed(self, event: NativeEvent) -> list[StreamPart]:
        """The parts that one event makes: none, where it says nothing new or is of an unknown kind."""
        if isinstance(event, ServerSentEvent):
            data: bytes | str = event.data
            if event.event == "error":
                return self._error_event(data)
        elif isinstance(event, str | bytes):
            data = event
        else:
            return self._chunk(event if isinstance(event, dict) else dict(event))
        try:
            native = orjson.loads(data)
        except orjson.JSONDecodeError:
            return self._odd_data(data)
        return self._chunk(native)

    def finish(self, unfinished: bytes | None = None) -> list[StreamPart]:
        """The source has ended. unfinished: the data of a last event without its empty line, from the framing.

        That event is dropped, as the standard has it, and shows that the stream was cut: unless it was `[DONE]`.
        """
        rest = (unfinished or b"").strip()
        if rest == DONE:
            self.done = True
        complete = self._reason is not None and (not rest or self.done)
        if not complete and not self._failed:
            return self.interrupt(self._errors.interrupted(_CUT, status=self._status))
        parts = self._close_blocks()
        if self._audio_data:
            file = audio_file(self._audio, "".join(self._audio_data), self._provider, self._audio_type)
            parts.extend([file] if file is not None else [])
        if self._tools is not None:
            closed, error = self._tools.end(whole=complete, status=self._status)
            self._failed = self._failed or error is not None
            parts.extend(closed)
        reason = finish_reason(self._reason, refused=bool(self._refusal), failed=self._failed)
        return self._finish(parts, Finish(reason, usage(self._usage), self._metadata()))

    def interrupt(self, error: ProviderError) -> list[StreamPart]:
        """The source failed with `error`: close what is open, tell it, and finish. Half a tool call is not passed on.

        Of several errors the first is told: what breaks after a provider has said that it failed is no news.
        """
        parts = self._close_blocks()
        if self._tools is not None:
            parts.extend(self._tools.end(whole=False)[0])
        reason = finish_reason(self._reason, failed=True)
        if not self._failed:
            self._failed = True
            parts.append(ErrorPart(error))
            reason = INTERRUPTED
        return self._finish(parts, Finish(reason, usage(self._usage), self._metadata()))

    # ---------------------------------------------------------------------------------------------------- events

    def _chunk(self, native: object) -> list[StreamPart]:
        parts: list[StreamPart] = [Raw(native)] if self._include_raw else []  # type: ignore[arg-type]  # parsed JSON
        if not isinstance(native, dict):
            return self._malformed(parts, native)
        choices = native.get("choices")
        if native.get("error") or choices is None:
            failure = error_object(native)
            if failure is not None:
                return self._fail(parts, failure)
        told = native.get("usage")
        if told and isinstance(told, Mapping):
            self._usage = told  # a running total: the last one stands
        if choices is None:
            return parts  # usage alone, or an event of a kind that we do not know
        if not isinstance(choices, list):
            return self._malformed(parts, native)
        if not self._described and (choices or native.get("id") or native.get("model")):
            parts.append(self._describe(native))
        if not choices:
            return parts
        choice = choices[0]
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if not isinstance(delta, dict):
            if not isinstance(choice, dict) or delta is not None:
                return self._malformed(parts, native)
            delta = {}
        content = delta.get("content")
        # Nearly every event is a plain piece of text: it goes past the general reading of a delta.
        if content.__class__ is str and not (delta.get("reasoning_content") or delta.get("reasoning")):
            if content:
                parts.append(TextDelta(self._text_id or self._open_text(parts), content))
        elif content is not None and not isinstance(content, str | list):
            return self._malformed(parts, native)
        else:
            for kind, text in text_pieces(delta):
                if kind == "text":
                    parts.append(TextDelta(self._text_id or self._open_text(parts), text))
                else:
                    parts.append(ReasoningDelta(self._reasoning_id or self._open_reasoning(parts), text))
        for key in delta:
            if key not in _PLAIN:
                self._rare(delta, native, parts)
                break
        if "citations" in native:
            self._add_sources({}, native, parts)
        reason = choice.get("finish_reason")
        if reason:
            self._reason = str(reason)
            if choice.get("error"):
                return self._fail(parts, choice)
        return parts

    def _rare(self, delta: Mapping[str, JSON], native: Mapping[str, JSON], parts: list[StreamPart]) -> None:
        """Everything that a delta may hold besides text and reasoning."""
        refusal = words(delta.get("refusal"))
        if refusal is not None:
            self._refusal.append(refusal)
            metadata: JSONObject = {self._provider: {"refusal": True}}
            parts.append(TextDelta(self._text_id or self._open_text(parts), refusal, metadata))
        fragments = delta.get("tool_calls")
        if not fragments and isinstance(delta.get("function_call"), Mapping):  # the form before tools
            fragments = [{"function": delta["function_call"]}]
        if fragments:
            self._add_tools(fragments, native, parts)
        for file in images(delta):
            self.begun = True
            parts.append(file)
        audio = delta.get("audio")
        if isinstance(audio, Mapping):
            self._add_audio(audio, parts)
        if delta.get("annotations"):
            self._add_sources(delta, {}, parts)

    def _add_tools(self, fragments: JSON, native: Mapping[str, JSON], parts: list[StreamPart]) -> None:
        if not isinstance(fragments, list) or not all(isinstance(fragment, Mapping) for fragment in fragments):
            self._malformed(parts, native)
            return
        if self._tools is None:
            self._tools = ToolDeltas(self._provider, CallIds(native, self._ids), self._errors)
        self._close_reasoning(parts)
        for fragment in fragments:
            assert isinstance(fragment, Mapping)
            made = self._tools.feed(fragment)
            self.begun = self.begun or len(made) > 0
            parts.extend(made)

    def _add_audio(self, audio: Mapping[str, JSON], parts: list[StreamPart]) -> None:
        data, transcript = words(audio.get("data")), words(audio.get("transcript"))
        self._audio.update((key, item) for key, item in audio.items() if key in ("id", "expires_at"))
        if data is not None:
            self._audio_data.append(data)
        if transcript is not None:
            parts.append(TextDelta(self._text_id or self._open_text(parts), transcript))

    def _add_sources(self, delta: Mapping[str, JSON], native: Mapping[str, JSON], parts: list[StreamPart]) -> None:
        for source in self._sources.read(delta, native):
            self.begun = True
            parts.append(source)

    def _describe(self, native: Mapping[str, JSON]) -> ResponseMetadata:
        self._described = True
        return ResponseMetadata(words(native.get("id")), timestamp(native.get("created")), words(native.get("model")))

    # ---------------------------------------------------------------------------------------------------- failures

    def _odd_data(self, data: bytes | str) -> list[StreamPart]:
        """Data that the strict parser refuses: `[DONE]`, nothing, JSON with loose ends, or no JSON."""
        text = (data.decode("utf-8", "replace") if isinstance(data, bytes) else data).strip()
        if text == "[DONE]":
            self.done = True
            return []
        if not text:
            return []
        try:
            native = loose_json(text)
        except ValueError:
            parts: list[StreamPart] = [Raw(text)] if self._include_raw else []
            return self._malformed(parts, text, "an event of the stream is not JSON")
        return self._chunk(native)

    def _error_event(self, data: bytes | str) -> list[StreamPart]:
        """An event of type `error`, whatever its data looks like."""
        try:
            native = orjson.loads(data)
        except orjson.JSONDecodeError:
            native = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        return self._fail([Raw(native)] if self._include_raw else [], native)

    def _fail(self, parts: list[StreamPart], native: object) -> list[StreamPart]:
        self._failed = True
        parts.append(ErrorPart(self._errors.of_object(native, status=self._status, headers=self._headers)))
        return parts

    def _malformed(
        self, parts: list[StreamPart], native: object, what: str = "an event of the stream is not a chunk"
    ) -> list[StreamPart]:
        self._failed = True
        parts.append(ErrorPart(self._errors.malformed(what, native, status=self._status, headers=self._headers)))
        return parts

    # ---------------------------------------------------------------------------------------------------- blocks

    def _open_text(self, parts: list[StreamPart]) -> str:
        self._close_reasoning(parts)
        self._text_id = id = self._new_id("txt")
        parts.append(TextStart(id))
        return id

    def _open_reasoning(self, parts: list[StreamPart]) -> str:
        self._close_text(parts)
        self._reasoning_id = id = self._new_id("reasoning")
        parts.append(ReasoningStart(id))
        return id

    def _close_text(self, parts: list[StreamPart]) -> None:
        if self._text_id is not None:
            parts.append(TextEnd(self._text_id))
            self._text_id = None

    def _close_reasoning(self, parts: list[StreamPart]) -> None:
        if self._reasoning_id is not None:
            parts.append(ReasoningEnd(self._reasoning_id))
            self._reasoning_id = None

    def _close_blocks(self) -> list[StreamPart]:
        parts: list[StreamPart] = []
        self._close_reasoning(parts)
        self._close_text(parts)
        return parts

    def _new_id(self, kind: str) -> str:
        self.begun = True
        number = sum(id.startswith(f"{kind}-") for id in self._ids)
        while (id := f"{kind}-{number}") in self._ids:
            number += 1
        self._ids.add(id)
        return id

    def _metadata(self) -> JSONObject:
        return provider_metadata(self._provider, self._usage, "".join(self._refusal) or None)

    def _finish(self, parts: list[StreamPart], last: Finish) -> list[StreamPart]:
        if self._finished:
            return []
        self._finished = True
        parts.append(last)
        return parts


_CUT = "the stream ended before the model said why it stopped"
