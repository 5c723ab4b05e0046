"""Deltas of no open block. No grammar allows them and some servers send them: who shows deltas as they come shows
these too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...protocol import (
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from .material import ANSWERS, STOP
from .subject import Seen, Subject
from .wording import require, show, show_parts


@dataclass(frozen=True)
class _Kind:
    delta: type[TextDelta | ReasoningDelta | ToolInputDelta]
    start: Callable[[], StreamPart]
    end: Callable[[], StreamPart]
    said: Callable[[str], str] = lambda text: text


_KINDS = (
    _Kind(TextDelta, lambda: TextStart("0"), lambda: TextEnd("0")),
    _Kind(ReasoningDelta, lambda: ReasoningStart("0"), lambda: ReasoningEnd("0")),
    _Kind(
        ToolInputDelta,
        lambda: ToolInputStart("0", "look_up"),
        lambda: ToolInputEnd("0"),
        lambda text: json.dumps({"word": text}),
    ),
)


async def check_deltas_of_no_block_are_changed_like_others(subject: Subject) -> None:
    """Left out is well, too: no answer has a place for them."""
    for text in dict.fromkeys(answer.text for answer in (*ANSWERS, *subject.answers) if answer.text):
        for kind in _KINDS:
            said = kind.said(text)
            proper = await subject.ask("stream", _in_a_block(kind, said))
            if not proper.calls or proper.answered is None or _came(proper, kind) == said:
                continue  # nothing to change in it, or all of it is taken out
            for fed, script in _orphaned(kind, said):
                seen = await subject.ask("stream", script)
                require(
                    seen.answered is None or _came(seen, kind) != said,
                    f"{fed}, {show_parts(script)}: {show(said)} passes as it is, and in a block it becomes "
                    f"{show(_came(proper, kind))}. Treat a delta whose block is not open as one of a block that begins "
                    f"there, as result.blocks(...) does, or leave it out",
                )


def _came(seen: Seen, kind: _Kind) -> str:
    return "".join(part.delta for part in seen.parts if isinstance(part, kind.delta))


def _in_a_block(kind: _Kind, said: str) -> list[StreamPart]:
    calls = [ToolCall("0", "look_up", said)] if kind.delta is ToolInputDelta else []
    return [StreamStart(), kind.start(), kind.delta("0", said), kind.end(), *calls, STOP]


def _orphaned(kind: _Kind, said: str) -> Iterator[tuple[str, list[StreamPart]]]:
    half = len(said) // 2
    deltas = [kind.delta("0", piece) for piece in (said[:half], said[half:]) if piece]
    yield "deltas of a block that never began", [StreamStart(), *deltas, STOP]
    yield "a delta before its block begins", [StreamStart(), kind.delta("0", said), kind.start(), kind.end(), STOP]
    yield "a delta after its block has ended", [StreamStart(), kind.start(), kind.end(), kind.delta("0", said), STOP]
