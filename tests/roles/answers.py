"""Random answers of a model, as the parts of a stream: interleaved blocks cut anywhere, calls, sources, raw chunks."""

from __future__ import annotations

import json
import os
from itertools import pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from neurolink_mw.protocol import (
    Finish,
    FinishReason,
    InputTokens,
    OutputTokens,
    Raw,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    Source,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)

MORE = int(os.environ.get("NEUROLINK_MW_FUZZ", "1"))
"""How many times as many examples as usual: `.ci/run` asks for more."""

COST = Usage(InputTokens(5, 5, 0, 0), OutputTokens(3, 3, 0))


def examples(count: int) -> settings:
    """So many examples, the same ones in every run."""
    return settings(
        max_examples=count * MORE,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


# Few letters, so that forbidden words, halves of them and words over a cut come often.
words = st.text("bom x", max_size=14)
metadata = st.none() | st.just({"acme": {"signature": "sig"}})


def _pieces(draw: st.DrawFn, text: str) -> list[str]:
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=4)))
    return [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]


def _text(draw: st.DrawFn, id: str) -> list[StreamPart]:
    deltas = [TextDelta(id, piece) for piece in _pieces(draw, draw(words))]
    return [TextStart(id, draw(metadata)), *deltas, TextEnd(id)]


def _reasoning(draw: st.DrawFn, id: str) -> list[StreamPart]:
    deltas = [ReasoningDelta(id, piece) for piece in _pieces(draw, draw(words))]
    return [ReasoningStart(id), *deltas, ReasoningDelta(id, "", draw(metadata)), ReasoningEnd(id)]


def _call(draw: st.DrawFn, id: str) -> list[StreamPart]:
    input = json.dumps({"q": draw(words)})
    by_provider = draw(st.sampled_from([None, None, True]))
    call = ToolCall(id, "search", input, by_provider)
    if draw(st.booleans()):
        return [call]
    deltas = [ToolInputDelta(id, piece) for piece in _pieces(draw, input)]
    return [ToolInputStart(id, "search", by_provider), *deltas, ToolInputEnd(id), call]


def _source(draw: st.DrawFn, id: str) -> list[StreamPart]:
    return [Source("url", id, url="https://example.org/")]


def _raw(draw: st.DrawFn, id: str) -> list[StreamPart]:
    return [Raw({"chunk": draw(words)})]


@st.composite
def answers(draw: st.DrawFn, *, raw: bool = True) -> list[StreamPart]:
    """The parts of one answer. Blocks interleave; each keeps its own order."""
    kinds = [_text, _text, _reasoning, _call, _source, *([_raw] if raw else [])]
    makers = draw(st.lists(st.sampled_from(kinds), max_size=4))
    waiting = [make(draw, str(number)) for number, make in enumerate(makers)]
    parts: list[StreamPart] = [StreamStart()]
    if draw(st.booleans()):
        parts.append(ResponseMetadata("r-1"))
    while waiting:
        block = waiting[draw(st.integers(0, len(waiting) - 1))]
        parts.append(block.pop(0))
        waiting = [one for one in waiting if one]
    reason = draw(st.sampled_from(["stop", "tool-calls", "length"]))
    return [*parts, Finish(FinishReason(reason), COST)]


def cut_again(draw: st.DrawFn, parts: list[StreamPart]) -> list[StreamPart]:
    """The same answer, cut at other places."""
    out: list[StreamPart] = []
    for part in parts:
        if isinstance(part, TextDelta | ReasoningDelta | ToolInputDelta) and part.delta:
            out += [part.replace(delta=piece) for piece in _pieces(draw, part.delta)]
        else:
            out.append(part)
    return out
