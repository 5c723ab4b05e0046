"""A rewriting of text: the same text comes out, however the stream cut it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from inspect import isawaitable
from typing import Any, ClassVar, cast

from ..errors import ConfigError
from ..events import Subject
from ..pipeline import Effect, Middleware, Rules, Stage
from ..pipeline.bind import awaiting
from ..pipeline.middleware import is_sync
from ..pipeline.mistake import Mistake
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
from .lookahead import FunctionLookahead, RewritingBlock, Whole, transformed
from .role import PATIENCE_S, Adapter, Role, within
from .units import CHANNELS, require_channels, without_body

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
    answers: ClassVar[frozenset[str]] = frozenset({"transform"})
    reads: ClassVar[frozenset[Effect]] = frozenset({"output"})
    writes: ClassVar[frozenset[Effect]] = frozenset({"output"})
    lookahead: int | None = None
    applies_to: Sequence[str] = ("text",)

    def transform(self, text: str) -> str | Awaitable[str]:
        """The text as it goes on. A function of the text alone."""
        raise NotImplementedError

    def begin_block(self) -> RewritingBlock:
        """What rewrites one block of a stream, where `transform` is sync."""
        return FunctionLookahead(cast("Callable[[str], str]", self.transform), cast(int, self.lookahead), self.no_text)

    def no_text(self, made: object) -> Mistake:
        """What is wrong with a transform that returned no text."""
        hint = ""
        if made is None:
            hint = "; is there a `return` missing?"
        elif isawaitable(made):
            hint = "; one that awaits is declared with `async def`, so that a stream knows to wait for whole blocks"
        return Mistake(f"{self.id}.transform returned {type(made).__name__}, not a text{hint}")

    def as_middleware(self, rules: Rules) -> Middleware:
        _require_settings(self, rules)
        return _TransformAdapter(self, rules)


class _TransformAdapter(Adapter[TextTransform]):
    def __init__(self, role: TextTransform, rules: Rules) -> None:
        super().__init__(role, rules)
        self._kinds = frozenset(role.applies_to)
        self._sync = is_sync(role.transform)
        transform = awaiting(role.transform, f"{role.id}.transform")
        # In shadow it may hold up nobody, also where its place sets no limit.
        unlimited = rules.mode != "shadow" or rules.timeout is not None
        self._transform: Callable[[str], Awaitable[Any]] = transform if unlimited else within(PATIENCE_S, transform)

    # -- whole answers

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options)
        content = await self._contents(result.content, options.context)
        return result if self.shadow else without_body(result.replace(content=content))

    async def _contents(self, content: Iterable[Content], context: CallContext) -> list[Content]:
        changed: set[str] = set()
        made = [await self._rewritten(one, changed) for one in content]
        self._note(context, changed)
        return made

    async def _rewritten(self, one: Content, changed: set[str]) -> Content:
        kind, text = _text_of(one)
        if kind is None or kind not in self._kinds:
            return one
        made = await self._made(text)
        if made == text:
            return one
        changed.add(kind)
        if isinstance(one, Reasoning):
            return one.replace(text=made, provider_metadata=None)
        return one.replace(input=made) if isinstance(one, ToolCall) else one.replace(text=made)

    async def _made(self, text: str) -> str:
        if self._sync:
            return transformed(cast("Callable[[str], str]", self.role.transform), text, self.role.no_text)
        if not text:
            return text
        made = await self._transform(text)
        if not isinstance(made, str):
            raise self.role.no_text(made)
        return made

    def _note(self, context: CallContext, changed: Collection[str]) -> None:
        """Say once of each kind of text that something became another one."""
        for kind in CHANNELS:
            if kind in changed:
                self.note(context, "replaced", TRANSFORMED, _SUBJECTS[kind])

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
        changed: set[str] = set()
        async for part in parts:
            cls = part.__class__
            if cls is Raw:
                continue
            if isinstance(part, TextDelta | ToolInputDelta) and BLOCK_DELTAS[cls] in kinds:
                made = await self._made(part.delta)
                if made != part.delta:
                    changed.add(BLOCK_DELTAS[cls])
                    part = part.replace(delta=made)
            elif isinstance(part, ToolCall) and "tool_input" in kinds:
                made = await self._made(part.input)
                if made != part.input:
                    changed.add("tool_input")
                    part = part.replace(input=made)
            elif cls is Finish:
                self._note(context, changed)
                changed.clear()
            yield part
        self._note(context, changed)

    async def _reasoning(self, parts: PartStream, context: CallContext) -> AsyncIterator[StreamPart]:
        """Holds each block of reasoning, and what comes behind it, until it is whole. One that changes leaves in one
        piece, without the metadata that was made for what the model thought."""
        held = _HeldReasoning()
        changed = False
        async for part in parts:
            for id in held.feed(part):
                changed |= held.become(id, await self._made(held.text_of(id)))
            if part.__class__ is Finish and changed:
                self._note(context, {"reasoning"})
                changed = False
            for ready in held.ready():
                yield ready
        for id in held.open:  # a stream without its end
            changed |= held.become(id, await self._made(held.text_of(id)))
        if changed:
            self._note(context, {"reasoning"})
        for ready in held.ready():
            yield ready

    async def _shadowed(self, parts: PartStream, context: CallContext) -> AsyncIterator[StreamPart]:
        answer = Accumulator()
        finished = False
        async for part in parts:
            answer.feed(part)
            if part.__class__ is Finish:
                finished = True
                await self._contents(answer.result().content, context)
            yield part
        if not finished:
            await self._contents(answer.result().content, context)


class _HeldReasoning:
    """The parts of a stream, held while a block of reasoning is open. One that becomes another text leaves in one
    piece, without the metadata that was made for what the model thought."""

    __slots__ = ("_made", "_queue", "_thoughts")

    def __init__(self) -> None:
        self._queue: list[StreamPart] = []
        self._thoughts: dict[str, list[str]] = {}  # of the blocks that are open
        self._made: dict[str, str] = {}

    @property
    def open(self) -> list[str]:
        return list(self._thoughts)

    def feed(self, part: StreamPart) -> list[str]:
        """Returns the ids of the blocks that are whole now."""
        self._queue.append(part)
        if isinstance(part, ReasoningStart):
            self._thoughts.setdefault(part.id, [])
        elif isinstance(part, ReasoningDelta):  # one of no block begins one
            self._thoughts.setdefault(part.id, []).append(part.delta)
        elif isinstance(part, ReasoningEnd) and part.id in self._thoughts:
            return [part.id]
        return self.open if isinstance(part, Finish) else []

    def text_of(self, id: str) -> str:
        return "".join(self._thoughts[id])

    def become(self, id: str, text: str) -> bool:
        """What a block became. Returns whether that is another text."""
        if text == "".join(self._thoughts.pop(id)):
            return False
        self._made[id] = text
        return True

    def ready(self) -> Iterator[StreamPart]:
        if self._thoughts:
            return
        queue, made = self._queue, self._made
        self._queue, self._made = [], {}
        given: set[str] = set()
        for part in queue:
            if not isinstance(part, ReasoningStart | ReasoningDelta | ReasoningEnd) or part.id not in made:
                yield part
                continue
            if not isinstance(part, ReasoningDelta):
                yield part.replace(provider_metadata=None)
            if part.id not in given and made[part.id]:
                yield ReasoningDelta(part.id, made[part.id])
            given.add(part.id)


class _Rewriting:
    """One stream under a sync transform: `part` for each part, `rest` where the stream ends without its finish."""

    __slots__ = ("_blocks", "_changed", "_kinds", "_note", "_rewriter", "_role")

    def __init__(self, role: TextTransform, kinds: frozenset[str], note: Callable[[set[str]], None]) -> None:
        self._role = role
        self._kinds = kinds
        self._note = note
        self._blocks: list[tuple[str, RewritingBlock]] = []
        self._changed: set[str] = set()
        self._rewriter = BlockRewriter(self._begin, tuple(kinds))

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
            made = transformed(transform, part.input, self._role.no_text)
            if made == part.input:
                return part
            self._changed.add("tool_input")
            return part.replace(input=made)
        rewritten = self._rewriter(part)
        if cls is Finish:
            self._note_changed()
        return rewritten

    def rest(self) -> Sequence[StreamPart]:
        held = self._rewriter.rest()
        self._note_changed()
        return held

    def _note_changed(self) -> None:
        self._note(self._changed | {kind for kind, block in self._blocks if block.changed})
        self._changed.clear()
        self._blocks.clear()


_SUBJECTS: dict[str, Subject] = {"text": "text", "reasoning": "reasoning", "tool_input": "tool_call"}


def _text_of(one: Content) -> tuple[str | None, str]:
    if isinstance(one, Text):
        return "text", one.text
    if isinstance(one, Reasoning):
        return "reasoning", one.text
    return ("tool_input", one.input) if isinstance(one, ToolCall) else (None, "")


def _require_settings(role: TextTransform, rules: Rules) -> None:
    """ConfigError for a transform that cannot work."""
    name = type(role).__name__
    transform: object = role.transform
    if getattr(transform, "__func__", transform) is TextTransform.transform:
        raise ConfigError(f"{name} has no transform(): it says what becomes of a text")
    require_channels(f"{name}.applies_to", role.applies_to, "a transform rewrites")
    reach: object = role.lookahead
    if is_sync(transform) and (isinstance(reach, bool) or not isinstance(reach, int) or reach < 1):
        raise ConfigError(
            f"{name}.lookahead says how many characters a match can reach, context included, so that a stream can be "
            f"rewritten on its way: a whole number from 1 on, not {'nothing' if reach is None else repr(reach)}"
        )
    if rules.blocking:
        raise ConfigError(f"{role.id}: blocking is not for a transform, which runs at every piece: make it async")
