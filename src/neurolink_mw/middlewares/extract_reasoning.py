"""`extract_reasoning`: what a model thinks aloud between tags becomes reasoning instead of text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator

from ..pipeline import Middleware, MiddlewareConfig, Stage
from ..pipeline.member import Effect
from ..protocol import (
    Accumulator,
    CallOptions,
    Content,
    Finish,
    GenerateResult,
    JSONObject,
    LanguageModel,
    PartStream,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamResult,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputStart,
)

Channel: TypeAlias = Literal["text", "reasoning"]


class Delimiters(MiddlewareConfig):
    """What stands before and after a stretch of reasoning. Both are matched as they are, in this case."""

    opening: str = Field(min_length=1)
    closing: str = Field(min_length=1)


class ExtractReasoningConfig(MiddlewareConfig):
    """tag_name: of the tags around reasoning, without angle brackets; or an `opening` and a `closing`, for a model that
    marks it in another way. separator: stands between the stretches that one block is made of. start_with_reasoning:
    the model begins in the middle of its reasoning, since its prompt already ends with the opening tag.
    """

    tag_name: str | Delimiters = "think"
    separator: str = "\n"
    start_with_reasoning: bool = False

    @field_validator("tag_name")
    @classmethod
    def _is_a_name(cls, given: str | Delimiters) -> str | Delimiters:
        if isinstance(given, str) and (not given or any(sign in given for sign in "<>/ \t\r\n")):
            raise ValueError('the name of a tag has no brackets and no spaces, as in "think"')
        return given

    @property
    def delimiters(self) -> Delimiters:
        if isinstance(self.tag_name, Delimiters):
            return self.tag_name
        return Delimiters(opening=f"<{self.tag_name}>", closing=f"</{self.tag_name}>")


class ExtractReasoning(Middleware):
    """Moves what stands between `<think>` and `</think>` from the text of an answer into reasoning.

    Each stretch becomes a block of reasoning, and the text around them stays one block. A stretch that is never closed
    is reasoning to the end, and so is a whole answer without any tag under `start_with_reasoning`, which is about the
    first block of text: a stream cannot take back what it sent, and a whole answer says the same. A block that was
    nothing but reasoning leaves no empty text behind, unless it carries metadata.

    A stream waits for what may still become a tag, and no more. The reasoning has no provider metadata: no provider
    signed it.
    """

    stage: ClassVar[int] = Stage.ADAPT
    reads: ClassVar[frozenset[Effect]] = frozenset({"output"})
    writes: ClassVar[frozenset[Effect]] = frozenset({"output"})
    Config = ExtractReasoningConfig
    config: ExtractReasoningConfig

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options)
        extractor = ReasoningExtractor(self.config)
        content: list[Content] = []
        for item in result.content:
            content += extractor.content_of(item) if isinstance(item, Text) else (item,)
        return result.replace(content=content)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).through(self._extracted)

    async def _extracted(self, parts: PartStream) -> AsyncIterator[StreamPart]:
        extractor = ReasoningExtractor(self.config)
        async for part in parts:
            for made in extractor.feed(part):
                yield made
        for made in extractor.finish():
            yield made


class TagSplitter:
    """Tells reasoning from text, in a text that comes in pieces: the same for every way to cut it.

    `feed(piece)` and `end()` return pieces with their channel. An empty one says that the channel begins, as soon as a
    tag says so. `inside`: it begins with reasoning, also where the opening tag comes all the same.
    """

    __slots__ = ("_begins_inside", "_channel", "_delimiters", "_held")

    def __init__(self, delimiters: Delimiters, *, inside: bool = False) -> None:
        self._delimiters = delimiters
        self._begins_inside = inside
        self._channel: Channel = "text"
        self._held = ""

    def is_plain_text(self, piece: str) -> bool:
        """Whether `feed` would return the piece as it is, as text: true of most, and quickly said."""
        return not self._held and self._channel == "text" and self._delimiters.opening[0] not in piece

    def feed(self, piece: str) -> list[tuple[Channel, str]]:
        """What may leave now. What may still become a tag is held."""
        text = self._held + piece
        if not text:
            return []
        opening, closing = self._delimiters.opening, self._delimiters.closing
        if self._begins_inside:
            if text != opening and opening.startswith(text):
                self._held = text
                return []
            self._begins_inside = False
            if not text.startswith(opening):
                text = opening + text
        told: list[tuple[Channel, str]] = []
        at = 0
        while True:
            tag = opening if self._channel == "text" else closing
            found = text.find(tag, at)
            end = len(text) - _half(tag, text, at) if found < 0 else found
            if end > at:
                told.append((self._channel, text[at:end]))
            if found < 0:
                self._held = text[end:]
                return told
            at = found + len(tag)
            self._channel = "reasoning" if self._channel == "text" else "text"
            told.append((self._channel, ""))

    def end(self) -> list[tuple[Channel, str]]:
        """What was held: it is no tag any more."""
        held, self._held = self._held, ""
        if not held:
            return []
        if self._begins_inside:
            self._begins_inside = False
            self._channel = "reasoning"
        return [(self._channel, held)]


def _half(tag: str, text: str, start: int) -> int:
    """How many characters at the end of `text`, which begins at `start`, are the beginning of a tag."""
    at = text.find(tag[0], max(start, len(text) - len(tag) + 1))
    while at >= 0:
        if tag.startswith(text[at:]):
            return len(text) - at
        at = text.find(tag[0], at + 1)
    return 0


class ReasoningExtractor:
    """The parts of one answer, with reasoning taken out of its text. `feed(part)` each, then `finish()`."""

    __slots__ = ("_blocks", "_config", "_delimiters", "_first", "_made", "_seen")

    def __init__(self, config: ExtractReasoningConfig) -> None:
        self._config = config
        self._delimiters = config.delimiters
        self._first = True  # whether the first block of text is still to come
        self._blocks: dict[str, _TextBlock] = {}
        self._seen: set[str] = set()
        self._made = 0

    @property
    def separator(self) -> str:
        return self._config.separator

    def feed(self, part: StreamPart) -> Iterable[StreamPart]:
        if isinstance(part, TextDelta):
            block = self._blocks.get(part.id)
            # A piece of no open block is part of no answer, and what it says may be reasoning: it is left out.
            return () if block is None else block.delta(part)
        if isinstance(part, TextEnd):
            block = self._blocks.pop(part.id, None)
            return (part,) if block is None else block.end(part)
        if isinstance(part, TextStart):
            unended = self._blocks.pop(part.id, None)
            self._begin(part)
            return () if unended is None else unended.end(None)
        if isinstance(part, Finish):
            return (*self.finish(), part)
        if isinstance(part, ReasoningStart | ToolInputStart):
            self._seen.add(part.id)
        return (part,)

    def finish(self) -> Iterator[StreamPart]:
        """What is held of blocks that the source never ended."""
        blocks, self._blocks = self._blocks, {}
        for block in blocks.values():
            yield from block.end(None)

    def content_of(self, text: Text) -> tuple[Content, ...]:
        """What a block of a whole answer becomes: what it would add up to as a stream."""
        answer = Accumulator()
        for part in (TextStart("", text.provider_metadata, text.extra), TextDelta("", text.text), TextEnd("")):
            for made in self.feed(part):
                answer.feed(made)
        return tuple(answer.result().content)

    def new_id(self) -> str:
        """An id for a block of reasoning. The tag is part of it: where two extractors stand one around the other, each
        makes ids of its own."""
        tag = self._config.tag_name
        label = tag if isinstance(tag, str) else tag.opening
        while True:
            id = f"reasoning-{label}-{self._made}"
            self._made += 1
            if id not in self._seen:
                return id

    def _begin(self, start: TextStart) -> None:
        inside = self._first and self._config.start_with_reasoning
        self._first = False
        self._seen.add(start.id)
        self._blocks[start.id] = _TextBlock(self, start, TagSplitter(self._delimiters, inside=inside))


class _TextBlock:
    """A text block that is open. Its start waits for the first text, so that reasoning that comes first also stands
    first; metadata of pieces in which there is no text rides on it."""

    __slots__ = (
        *("_answer", "_extra", "_has_reasoning", "_id", "_later", "_metadata", "_reasoning", "_said", "_splitter"),
        "_started",
    )

    def __init__(self, answer: ReasoningExtractor, start: TextStart, splitter: TagSplitter) -> None:
        self._answer = answer
        self._splitter = splitter
        self._id = start.id
        self._metadata = start.provider_metadata
        self._extra = start.extra
        self._started = False
        self._reasoning: str | None = None  # the id of the block of reasoning that is open
        self._has_reasoning = False
        self._said: set[Channel] = set()
        self._later: set[Channel] = set()  # channels that began again and have said nothing since

    def delta(self, part: TextDelta) -> Iterable[StreamPart]:
        plain = self._started and not self._later and self._splitter.is_plain_text(part.delta)
        return (part,) if plain else self._split(part)

    def _split(self, part: TextDelta) -> Iterator[StreamPart]:
        carries = part.provider_metadata is not None or part.extra is not None
        for channel, text in self._splitter.feed(part.delta):
            for made in self._parts(channel, text):
                if carries and isinstance(made, TextDelta):
                    carries = False
                    yield part.replace(delta=made.delta)
                else:
                    yield made
        if carries and self._started:
            yield part.replace(delta="")
        elif carries:
            self._metadata = _merged(self._metadata, part.provider_metadata)
            self._extra = _merged(self._extra, part.extra)

    def end(self, part: TextEnd | None) -> Iterator[StreamPart]:
        """The block is over. part: its end, unless the source never sent one."""
        for channel, text in self._splitter.end():
            yield from self._parts(channel, text)
        yield from self._end_reasoning()
        if not self._started:
            carried = (self._metadata, self._extra, part and part.provider_metadata, part and part.extra)
            if self._has_reasoning and all(one is None for one in carried):
                return  # nothing but reasoning: several providers refuse an empty text in the next request
            yield from self._start_text()
        if part is not None:
            yield part

    def _parts(self, channel: Channel, text: str) -> Iterator[StreamPart]:
        if not text and channel in self._said:
            self._later.add(channel)
        if text and channel in self._later:
            self._later.discard(channel)
            text = self._answer.separator + text
        if text:
            self._said.add(channel)
        if channel == "text":
            yield from self._end_reasoning()
            if text:
                yield from self._start_text()
                yield TextDelta(self._id, text)
            return
        if self._reasoning is None:
            self._reasoning = self._answer.new_id()
            self._has_reasoning = True
            yield ReasoningStart(self._reasoning)
        if text:
            yield ReasoningDelta(self._reasoning, text)

    def _start_text(self) -> Iterator[StreamPart]:
        if not self._started:
            self._started = True
            yield TextStart(self._id, self._metadata, self._extra)

    def _end_reasoning(self) -> Iterator[StreamPart]:
        if self._reasoning is not None:
            id, self._reasoning = self._reasoning, None
            yield ReasoningEnd(id)


def _merged(known: JSONObject | None, more: JSONObject | None) -> JSONObject | None:
    if known is None or more is None:
        return more if known is None else known
    return {**known, **more}
