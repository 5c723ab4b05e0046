"""Under `Hold`, and for transforms, a forbidden text reaches nobody, by any road."""

from __future__ import annotations

import gc
import io
import logging
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.builders import ASKED, STOP, read

from neurolink_mw.events import Event
from neurolink_mw.middlewares.simulate_streaming import SimulateStreaming
from neurolink_mw.pipeline import Member, Surroundings, Use, wrap_model
from neurolink_mw.protocol import (
    CallOptions,
    ErrorPart,
    GenerateResult,
    Raw,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseInfo,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Value,
    to_json,
)
from neurolink_mw.roles import (
    Pass,
    RegexTransform,
    ResponsePolicy,
    Streaming,
    TextTransform,
    Verdict,
    View,
    Window,
    allow,
    deny,
    replace,
)
from neurolink_mw.testing import ScriptedModel

from .answers import examples
from .builders import Policy, Watch, text

WORD = "bomb"

ANSWER = GenerateResult(
    (Text(f"a {WORD} here"), Reasoning(f"think of a {WORD}")),
    response=ResponseInfo(id="r-1", body={"choices": [{"text": f"a {WORD} here"}]}),
)
PARTS: list[StreamPart] = [StreamStart(), Raw({"text": f"a {WORD}"}), *text("a bo", "mb", " here"), STOP]


def stars(view: View) -> Verdict:
    return replace(view.text.replace(WORD, "****")) if WORD in view.text else deny("odd")


class Denied(Policy):
    id = "denied"


class Replaced(Policy):
    id = "replaced"

    def __init__(self) -> None:
        super().__init__(stars)


class Failing(ResponsePolicy):
    def check(self, view: View) -> Verdict:
        raise ValueError(f"cannot judge {view.text}")


class Stars(TextTransform):
    lookahead = len(WORD)
    applies_to = ("text", "reasoning", "tool_input")

    def transform(self, text: str) -> str:
        return text.replace(WORD, "****")


class Matches(RegexTransform):
    def __init__(self) -> None:
        super().__init__(WORD, "****", applies_to=("text", "reasoning"))


HIDING: list[type[Member]] = [Denied, Replaced, Failing, Stars, Matches]


def everything(value: object) -> str:
    """All that somebody could read in a value, private parts and causes included."""
    seen: list[str] = []

    def look(value: Any, depth: int) -> None:
        if depth > 12:
            return
        if isinstance(value, str | bytes | int | float | bool) or value is None:
            seen.append(str(value))
        elif isinstance(value, dict):
            look([*value.keys(), *value.values()], depth + 1)
        elif isinstance(value, list | tuple | set | frozenset):
            for item in value:
                look(item, depth + 1)
        elif isinstance(value, BaseException):
            look([str(value), value.args, value.__cause__, value.__dict__], depth + 1)
        elif isinstance(value, Value):
            seen.append(repr(value))
            look([getattr(value, name) for name in type(value).__match_args__ if name != "context"], depth + 1)

    look(value, 0)
    return " ".join(seen)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    root = logging.getLogger()
    root.addHandler(handler)
    level, root.level = root.level, logging.DEBUG
    yield written
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["generate", "stream", "simulated"])
@pytest.mark.parametrize("hiding", HIDING)
async def test_a_forbidden_text_reaches_nobody(hiding: type[Member], kind: str, log: io.StringIO) -> None:
    events: list[Event] = []
    watch = Watch()
    model = ScriptedModel([ANSWER if kind != "stream" else PARTS])
    members: list[Member | Use] = [watch, hiding(), *([SimulateStreaming()] if kind == "simulated" else [])]
    wrapped = wrap_model(model, members, surroundings=Surroundings(events=events.append))
    told: list[object] = []
    if kind == "generate":
        told.append(await wrapped.do_generate(ASKED))
    else:
        result = await wrapped.do_stream(ASKED)
        told += [result.request, result.response]
        async with result.stream as stream:
            told += [part async for part in stream]
    gc.collect()
    for part in told:
        assert WORD not in everything(part), part
        assert part is None or WORD not in str(to_json(part))
    assert WORD not in everything(watch.parts)
    assert WORD not in everything(watch.outcomes)
    assert WORD not in everything(events)
    assert WORD not in log.getvalue()


@pytest.mark.anyio
async def test_a_denied_tool_call_takes_its_input_and_its_raw_chunks_with_it() -> None:
    call = ToolCall("c", "search", f'{{"q": "{WORD}"}}')
    parts: list[StreamPart] = [StreamStart(), Raw({"q": WORD}), call, STOP]
    wrapped = wrap_model(ScriptedModel([parts]), [Policy()])
    async with (await wrapped.do_stream(CallOptions.from_text("hi"))).stream as stream:
        assert WORD not in everything([part async for part in stream])


@pytest.mark.anyio
async def test_a_replaced_text_takes_the_metadata_with_it_that_was_made_for_it() -> None:
    told = GenerateResult((Text(f"a {WORD} here", {"acme": {"logprobs": [WORD]}}),))
    made = await wrap_model(ScriptedModel([told]), [Replaced()]).do_generate(ASKED)
    assert made.content == (Text("a **** here"),)


@pytest.mark.anyio
async def test_what_is_allowed_keeps_its_raw_chunks_and_the_providers_response() -> None:
    raw = Raw({"text": "all is well"})
    parts: list[StreamPart] = [StreamStart(), raw, *text("all is well"), STOP]
    wrapped = wrap_model(ScriptedModel([parts, ANSWER.replace(content=(Text("fine"),))]), [Policy()])
    async with (await wrapped.do_stream(ASKED)).stream as stream:
        assert [part async for part in stream] == parts
    whole = await wrapped.do_generate(ASKED)
    assert whole.response == ANSWER.response


# -- what no honest model sends: any parts in any order

IDS, SAID = st.sampled_from("12"), st.sampled_from(["", "a", "b", "ab"])
ANY_PART: st.SearchStrategy[StreamPart] = st.one_of(
    *(st.builds(start, IDS) for start in (TextStart, ReasoningStart, TextEnd, ReasoningEnd, ToolInputEnd)),
    *(st.builds(delta, IDS, SAID) for delta in (TextDelta, ReasoningDelta, ToolInputDelta)),
    st.builds(ToolInputStart, IDS, st.just("run")),
    st.builds(ToolCall, IDS, st.just("run"), SAID),
    st.builds(Raw, SAID),
    st.just(ErrorPart("cut")),
)


@pytest.mark.parametrize("replaces", [False, True], ids=["denies", "replaces"])
@pytest.mark.parametrize("finish", [[STOP], []], ids=["finish", "cut"])
def test_in_whatever_order_parts_come_none_leaves_that_no_verdict_has_seen(
    replaces: bool, finish: list[StreamPart]
) -> None:
    def no_b(view: View) -> Verdict:
        if "b" not in view.text:
            return allow()
        return replace("*") if replaces else deny("odd", "No.")

    @examples(500)
    @given(st.lists(ANY_PART, max_size=8))
    def holds(parts: list[StreamPart]) -> None:
        async def stream() -> None:
            seen = await read(wrap_model(ScriptedModel([[StreamStart(), *parts, *finish]]), [Policy(no_b)]))
            told = [part.delta for part in seen if isinstance(part, TextDelta | ReasoningDelta | ToolInputDelta)]
            told += [part.input for part in seen if isinstance(part, ToolCall)]
            assert not any("b" in one for one in told), seen
            if any("b" in str(getattr(part, "delta", getattr(part, "input", ""))) for part in parts):
                assert not any(isinstance(part, Raw) for part in seen)

        anyio.run(stream)

    holds()


@examples(500)
@given(st.lists(ANY_PART, max_size=8), st.sampled_from([Window(1), Pass()]))
def test_nor_does_the_input_of_a_call(parts: list[StreamPart], mode: Streaming) -> None:
    def no_b(view: View) -> Verdict:
        return deny("odd") if view.kind == "tool_call" and "b" in view.text else allow()

    async def stream() -> None:
        seen = await read(wrap_model(ScriptedModel([[StreamStart(), *parts, STOP]]), [Policy(no_b, mode)]))
        assert not any(isinstance(part, ToolCall) and "b" in part.input for part in seen)
        assert not any(isinstance(part, ToolInputDelta) and "b" in part.delta for part in seen)

    anyio.run(stream)
