"""From parts to a whole answer, and back. A stream and the answer it adds up to say the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .content import Content, File, Reasoning, Source, Text, ToolApprovalRequest, ToolCall, ToolResult, UnknownPart
from .parts import (
    BLOCK_DELTAS,
    BLOCK_ENDS,
    BLOCK_STARTS,
    ErrorPart,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from .results import CallWarning, FinishReason, GenerateResult, ResponseInfo, Usage
from .values import JSONObject

INTERRUPTED = FinishReason("error", "interrupted")
"""How a stream ends that was cut: never a quiet stop."""


class _Block:
    __slots__ = ("cls", "extra", "metadata", "pieces")

    def __init__(self, start: TextStart | ReasoningStart) -> None:
        self.cls = Text if isinstance(start, TextStart) else Reasoning
        self.pieces: list[str] = []
        self.metadata = start.provider_metadata
        self.extra = start.extra

    def end(self, part: TextEnd | ReasoningEnd) -> None:
        self.metadata = _merged(self.metadata, part.provider_metadata)
        self.extra = _merged(self.extra, part.extra)

    def content(self) -> Text | Reasoning:
        return self.cls("".join(self.pieces), self.metadata, self.extra)


def _merged(known: JSONObject | None, more: JSONObject | None) -> JSONObject | None:
    """Metadata may ride on any piece of a block: a provider's later entry wins, others are kept."""
    if more is None:
        return known
    return more if known is None else {**known, **more}


class Accumulator:
    """Adds parts up. `feed(part)` each, then `result()`; `errors` are those of the error parts.

    Content stands in the order in which blocks began. A stream without a finish adds up to an interrupted answer. A
    preliminary tool result is replaced by the next result of the same call.
    """

    __slots__ = ("_blocks", "_content", "_finish", "_metadata", "_preliminary", "_warnings", "errors")

    def __init__(self) -> None:
        self._content: list[Content | _Block] = []
        self._blocks: dict[tuple[str, str], _Block] = {}
        self._preliminary: dict[str, int] = {}
        self._warnings: tuple[CallWarning, ...] = ()
        self._metadata: ResponseMetadata | None = None
        self._finish: Finish | None = None
        self.errors: list[object] = []

    def feed(self, part: StreamPart) -> None:
        if isinstance(part, TextDelta | ReasoningDelta):
            block = self._blocks.get((BLOCK_DELTAS[part.__class__], part.id))
            if block is not None:
                block.pieces.append(part.delta)
                if part.provider_metadata is not None:
                    block.metadata = _merged(block.metadata, part.provider_metadata)
        elif isinstance(part, TextStart | ReasoningStart):
            block = _Block(part)
            self._blocks[BLOCK_STARTS[part.__class__], part.id] = block
            self._content.append(block)
        elif isinstance(part, TextEnd | ReasoningEnd):
            ended = self._blocks.pop((BLOCK_ENDS[part.__class__], part.id), None)
            if ended is not None:
                ended.end(part)
        elif isinstance(part, ToolResult):
            self._add_result(part)
        elif isinstance(part, ToolCall | ToolApprovalRequest | Source | File | UnknownPart):
            self._content.append(part)
        elif isinstance(part, Finish):
            self._finish = part
        elif isinstance(part, StreamStart):
            self._warnings = tuple(part.warnings)
        elif isinstance(part, ResponseMetadata):
            self._metadata = part
        elif isinstance(part, ErrorPart):
            self.errors.append(part.error)

    def _add_result(self, part: ToolResult) -> None:
        place = self._preliminary.pop(part.tool_call_id, len(self._content))
        self._content[place : place + 1] = [part]
        if part.preliminary:
            self._preliminary[part.tool_call_id] = place

    def result(self) -> GenerateResult:
        """What the parts add up to so far."""
        finish, head = self._finish, self._metadata
        response = None if head is None else ResponseInfo(head.id, head.timestamp, head.model_id, extra=head.extra)
        return GenerateResult(
            tuple(item.content() if isinstance(item, _Block) else item for item in self._content),
            INTERRUPTED if finish is None else finish.finish_reason,
            Usage() if finish is None else finish.usage,
            self._warnings if finish is None else _with_late(self._warnings, finish.provider_metadata),
            None if finish is None else finish.provider_metadata,
            response=response,
            extra=None if finish is None else finish.extra,
        )


def _with_late(warnings: tuple[CallWarning, ...], metadata: JSONObject | None) -> tuple[CallWarning, ...]:
    """With those that only the end of an answer gives reason for: providers file them in its metadata, under
    `warnings`, since a stream begins with the others."""
    late: list[CallWarning] = []
    for own in metadata.values() if metadata else ():
        told = own.get("warnings") if isinstance(own, Mapping) else None
        for one in told if isinstance(told, list | tuple) else ():
            if isinstance(one, Mapping) and isinstance(kind := one.get("type"), str):
                feature, details, message = (
                    text if isinstance(text := one.get(name), str) else None for name in _WORDS
                )
                late.append(CallWarning(kind, feature, details, message))
    return (*warnings, *(one for one in late if one not in warnings))


_WORDS = ("feature", "details", "message")


def collect(parts: Iterable[StreamPart]) -> GenerateResult:
    """The answer that a list of parts adds up to."""
    accumulator = Accumulator()
    for part in parts:
        accumulator.feed(part)
    return accumulator.result()


def parts_of(result: GenerateResult) -> Iterator[StreamPart]:
    """An answer as a stream: `collect(parts_of(result))` says the same. Metadata rides on the block's start, fields
    that this version does not know on its end."""
    yield StreamStart(result.warnings)
    if (head := result.response) is not None:
        metadata = ResponseMetadata(head.id, head.timestamp, head.model_id, head.extra)
        if metadata != ResponseMetadata():
            yield metadata
    taken = {item.tool_call_id for item in result.content if isinstance(item, ToolCall)}
    for index, item in enumerate(result.content):
        id = str(index)
        while id in taken:
            id = f"block-{id}"
        if isinstance(item, Text):
            yield TextStart(id, item.provider_metadata)
            if item.text:
                yield TextDelta(id, item.text)
            yield TextEnd(id, extra=item.extra)
        elif isinstance(item, Reasoning):
            yield ReasoningStart(id, item.provider_metadata)
            if item.text:
                yield ReasoningDelta(id, item.text)
            yield ReasoningEnd(id, extra=item.extra)
        elif isinstance(item, ToolCall) and not item.provider_executed:
            yield ToolInputStart(item.tool_call_id, item.tool_name, dynamic=item.dynamic)
            if item.input:
                yield ToolInputDelta(item.tool_call_id, item.input)
            yield ToolInputEnd(item.tool_call_id)
            yield item
        else:
            yield item
    yield Finish(result.finish_reason, result.usage, result.provider_metadata, result.extra)
