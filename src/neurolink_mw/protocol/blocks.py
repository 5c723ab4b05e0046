"""Rewriting the text of blocks without knowing the stream: state per block id, text released at the block's end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from .parts import (
    BLOCK_DELTAS,
    BLOCK_ENDS,
    BLOCK_STARTS,
    BlockDelta,
    Finish,
    ReasoningDelta,
    StreamPart,
    TextDelta,
    ToolInputDelta,
)


class Block(Protocol):
    """What a rewriter keeps about one open block."""

    def delta(self, text: str) -> str:
        """One more piece. Returns what may leave now."""
        ...

    def end(self) -> str:
        """The block is over. Returns what was held."""
        ...


BlockFactory: TypeAlias = Callable[[str, str], Block]

_DELTA_OF: dict[str, type[BlockDelta]] = {"text": TextDelta, "reasoning": ReasoningDelta, "tool_input": ToolInputDelta}


class BlockRewriter:
    """A function of one part for `PartStream.expand`: deltas of the chosen kinds go through their block's object."""

    __slots__ = ("_factory", "_kinds", "_open")

    def __init__(self, factory: BlockFactory, kinds: Sequence[str]) -> None:
        unknown = set(kinds) - _DELTA_OF.keys()
        if unknown:
            raise ValueError(f"blocks() knows the kinds {', '.join(_DELTA_OF)}; not {', '.join(sorted(unknown))}")
        self._factory = factory
        self._kinds = frozenset(kinds)
        self._open: dict[tuple[str, str], Block] = {}

    def __call__(self, part: StreamPart) -> StreamPart | Sequence[StreamPart] | None:
        cls = part.__class__
        piece: Any = part  # the tables list only kinds that have an id
        if (kind := BLOCK_DELTAS.get(cls)) is not None:
            block = self._open.get((kind, piece.id))
            if block is None:
                if kind not in self._kinds:
                    return part
                # A model that sends a piece of no open block breaks the grammar; its text is rewritten all the same.
                block = self._open[kind, piece.id] = self._factory(kind, piece.id)
            return _rewritten(piece, block)
        if (kind := BLOCK_STARTS.get(cls)) is not None:
            if kind not in self._kinds:
                return part
            unended = self._open.get((kind, piece.id))
            self._open[kind, piece.id] = self._factory(kind, piece.id)
            held = "" if unended is None else unended.end()
            return (_DELTA_OF[kind](piece.id, held), part) if held else part
        if (kind := BLOCK_ENDS.get(cls)) is not None:
            block = self._open.pop((kind, piece.id), None)
            held = "" if block is None else block.end()
            return (_DELTA_OF[kind](piece.id, held), part) if held else part
        if cls is Finish and self._open:
            return (*self.rest(), part)
        return part

    def rest(self) -> Sequence[StreamPart]:
        """What is held of blocks that a source never closed: it still belongs to them."""
        held_by = [(kind, id, block.end()) for (kind, id), block in self._open.items()]
        self._open.clear()
        return [_DELTA_OF[kind](id, text) for kind, id, text in held_by if text]


def _rewritten(part: BlockDelta, block: Block) -> StreamPart | None:
    text = block.delta(part.delta)
    if not text and part.delta and part.provider_metadata is None and part.extra is None:
        return None
    return part if text == part.delta else part.replace(delta=text)
