"""A rewriting of text: the same text comes out, however the stream cut it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, cast

from ..errors import ConfigError
from ..events import Subject
from ..pipeline import Effect, Middleware, Rules, Stage
from ..pipeline.bind import awaiting
from ..pipeline.middleware import is_sync
from ..pipeline.wording import did_you_mean
from ..protocol import (
    CallContext,
    CallOptions,
    Content,
    Finish,
    GenerateResult,
    LanguageModel,
    PartStream,
    Raw,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamResult,
    Text,
    TextDelta,
    ToolCall,
    ToolInputDelta,
)
from ..protocol.accumulate import Accumulator
from ..protocol.blocks import BlockRewriter
from ..protocol.parts import BLOCK_DELTAS
from .lookahead import Lookahead, RewritingBlock, Whole, transformed
from .role import Adapter, Role
from .units import CHANNELS, without_body

TRANSFORMED = "transformed"
"""The code by which outcomes tell that a transform changed something."""


class TextTransform(Role):
    """Rewrites the text of answers.

        class RedactEmail(TextTransform):
            lookahead = 64

            def transform(self, text):
                return EMAIL.sub("[email]", text)

    lookahead: how far a match of the transform reaches, in characters: its longest match plus the context around it
    that decides it. A stream then waits for at most twice that. (What the transform matches and leaves as it is must
    not decide what it matches next; `RegexTransform` has no such limit.) An async `transform` needs no lookahead: it
    gets each block whole, at its end.

    applies_to: of "text", "reasoning" and "tool_input", each block by itself; reasoning is held to the end of its
    block, since one that changes loses the provider's signature. Raw chunks, and the provider's own response beside an
    answer, would still say what was rewritten: they are left out.
    """

    stage: ClassVar[int] = Stage.REDACT
    reads: ClassVar[frozenset[Effect]] = frozenset({"output"})
    writes: ClassVar[frozenset[Effect]] = frozenset({"output"})
    lookahead: int | None = None
    applies_to: Sequence[str] = ("text",)

    def transform(self, text: str) -> str | Awaitable[str]:
        """The text as it goes on. A function of the text alone."""
        raise NotImplementedError

    def begin_block(self) -> RewritingBlock:
        """What rewrites one block of a stream, where `transform` is sync."""
        return Lookahead(cast("Callable[[str], str]", self.transform), cast(int, self.lookahead), self.no_text)

    def no_text(self, made: object) -> ConfigError:
        """What is wrong with a transform that returned no text."""
        hint = "; is there a `return` missing?" if made is None else ""
        return ConfigError(f"{self.id}.transform returned {type(made).__name__}, not a text{hint}")

    def as_middleware(self, rules: Rules) -> Middleware:
        _require_settings(self, rules)
        return _TransformAdapter(self, rules)


class _TransformAdapter(Adapter[TextTransform]):
    def __init__(self, role: TextTransform, rules: Rules) -> None:
        super().__init__(role, rules)
        self._kinds = frozenset(role.applies_to)
        self._sync = is_sync(role.transform)
        self._transform: Callable[[str], Awaitable[Any]] = awaiting(role.transform, f"{role.id}.transform")

    # -- whole answers

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options)
        content = [await self._rewritten(one, options.context) for one in result.content]
        return result if self.shadow else without_body(result.replace(content=content))

    async def _rewritten(self, one: Content, context: CallContext) -> Content:
        kind, text = _text_of(one)
        if kind not in self._kinds or not text:
            return one
        made = await self._made(text)
        if made == text:
            return one
        self._note(context, _SUBJECTS[kind])
        if isinstance(one, Reasoning):
            return one.replace(text=made, provider_metadata=None)
        return one.replace(input=made) if isinstance(one, ToolCall) else one.replace(text=made)

    async def _made(self, text: str) -> str:
        made = await self._transform(text)
        if not isinstance(made, str):
            raise self.role.no_text(made)
        return made

    def _note(self, context: CallContext, subject: Subject) -> None:
        self.note(context, "replaced", TRANSFORMED, subject)

    # -- streams

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        result = await model.do_stream(options)
        context = options.context
        if self.shadow:
            return result.through(lambda parts: self._shadowed(parts, context))
        result = without_body(result)
        if "reasoning" in self._kinds:
            result = result.through(lambda parts: self._reasoning(parts, context))
        streamed = self._kinds - {"reasoning"}
        if not self._sync:
            result = result.blocks(lambda kind, id: Whole(), tuple(streamed))
            return result.through(lambda parts: self._awaited(parts, streamed, context))
        rewriting = _Rewriting(self.role, streamed, partial(self._note, context))
        return result.expand(rewriting.part, rest=rewriting.rest)

    async def _awaited(
        self, parts: PartStream, kinds: frozenset[str], context: CallContext
    ) -> AsyncIterator[StreamPart]:
        """Blocks that come in one piece each, through an async transform."""
        async for part in parts:
            cls = part.__class__
            if cls is Raw:
                continue
            if isinstance(part, TextDelta | ToolInputDelta) and part.delta and BLOCK_DELTAS[cls] in kinds:
                made = await self._made(part.delta)
                if made != part.delta:
                    self._note(context, _SUBJECTS[BLOCK_DELTAS[cls]])
                    part = part.replace(delta=made)
            elif isinstance(part, ToolCall) and "tool_input" in kinds:
                part = part.replace(input=await self._made(part.input))
            yield part

    async def _reasoning(self, parts: PartStream, context: CallContext) -> AsyncIterator[StreamPart]:
        """Holds each block of reasoning, and what comes behind it, until it is whole. One that changes leaves in one
        piece, without the metadata that was made for what the model thought."""
        queue: list[StreamPart] = []
        thoughts: dict[str, list[str]] = {}  # of the blocks that are open
        changed: dict[str, str] = {}
        async for part in parts:
            if isinstance(part, ReasoningStart):
                thoughts[part.id] = []
            elif isinstance(part, ReasoningDelta) and part.id in thoughts:
                thoughts[part.id].append(part.delta)
            ended = [part.id] if isinstance(part, ReasoningEnd) else list(thoughts) if isinstance(part, Finish) else []
            for id in ended:
                text = "".join(thoughts.pop(id, ()))
                made = await self._made(text) if text else text
                if made != text:
                    changed[id] = made
                    self._note(context, "reasoning")
            queue.append(part)
            if not thoughts:
                for waited in queue:
                    if isinstance(waited, ReasoningStart | ReasoningDelta | ReasoningEnd) and waited.id in changed:
                        for rewritten in _rewritten_reasoning(waited, changed[waited.id]):
                            yield rewritten
                    else:
                        yield waited
                queue.clear()
        for waited in queue:  # a stream without its end: what was held is given out as a whole answer has it
            yield waited

    async def _shadowed(self, parts: PartStream, context: CallContext) -> AsyncIterator[StreamPart]:
        answer = Accumulator()
        async for part in parts:
            answer.feed(part)
            if part.__class__ is Finish:
                for one in answer.result().content:
                    await self._rewritten(one, context)
            yield part


class _Rewriting:
    """One stream under a sync transform: `part` for each part, `rest` where the stream ends without its finish."""

    __slots__ = ("_blocks", "_kinds", "_note", "_rewriter", "_role", "rest")

    def __init__(self, role: TextTransform, kinds: frozenset[str], note: Callable[[Subject], None]) -> None:
        self._role = role
        self._kinds = kinds
        self._note = note
        self._blocks: list[tuple[str, RewritingBlock]] = []
        self._rewriter = BlockRewriter(self._begin, tuple(kinds))
        self.rest = self._rewriter.rest

    def _begin(self, kind: str, id: str) -> RewritingBlock:
        block = self._role.begin_block()
        self._blocks.append((kind, block))
        return block

    def part(self, part: StreamPart) -> StreamPart | Sequence[StreamPart] | None:
        cls = part.__class__
        if cls is TextDelta:
            return self._rewriter(part)
        if cls is Raw:
            return None
        if isinstance(part, ToolCall) and "tool_input" in self._kinds:
            transform = cast("Callable[[str], str]", self._role.transform)
            return part.replace(input=transformed(transform, part.input, self._role.no_text))
        made = self._rewriter(part)
        if cls is Finish:
            for kind in dict.fromkeys(kind for kind, block in self._blocks if block.changed):
                self._note(_SUBJECTS[kind])
        return made


_SUBJECTS: dict[str, Subject] = {"text": "text", "reasoning": "reasoning", "tool_input": "tool_call"}


def _text_of(one: Content) -> tuple[str | None, str]:
    if isinstance(one, Text):
        return "text", one.text
    if isinstance(one, Reasoning):
        return "reasoning", one.text
    return ("tool_input", one.input) if isinstance(one, ToolCall) else (None, "")


def _rewritten_reasoning(part: ReasoningStart | ReasoningDelta | ReasoningEnd, text: str) -> Iterator[StreamPart]:
    if isinstance(part, ReasoningDelta):
        return
    yield part.replace(provider_metadata=None)
    if isinstance(part, ReasoningStart) and text:
        yield ReasoningDelta(part.id, text)


def _require_settings(role: TextTransform, rules: Rules) -> None:
    """ConfigError for a transform that cannot work."""
    name = type(role).__name__
    transform: object = role.transform
    if getattr(transform, "__func__", transform) is TextTransform.transform:
        raise ConfigError(f"{name} has no transform(): it says what becomes of a text")
    if isinstance(role.applies_to, str):
        raise ConfigError(f"{name}.applies_to is a list of {', '.join(CHANNELS)}, not one string")
    for kind in role.applies_to:
        if kind not in CHANNELS:
            raise ConfigError(f"{name}.applies_to cannot name {kind!r}{did_you_mean(str(kind), list(CHANNELS))}")
    if not role.applies_to:
        raise ConfigError(f"{name}.applies_to is empty: a transform rewrites one of {', '.join(CHANNELS)}")
    reach: object = role.lookahead
    if is_sync(transform) and (isinstance(reach, bool) or not isinstance(reach, int) or reach < 1):
        raise ConfigError(
            f"{name}.lookahead says how many characters a match can reach, context included, so that a stream can be "
            f"rewritten on its way: a whole number from 1 on, not {'nothing' if reach is None else repr(reach)}"
        )
    if rules.blocking:
        raise ConfigError(f"{role.id}: blocking is not for a transform, which runs at every piece: make it async")
