"""Under `Hold`, and for transforms, a forbidden text reaches nobody, by any road."""

from __future__ import annotations

import gc
import io
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from neurolink_mw.events import Event
from neurolink_mw.middlewares.simulate_streaming import SimulateStreaming
from neurolink_mw.pipeline import Member, Surroundings, Use, wrap_model
from neurolink_mw.protocol import (
    CallOptions,
    GenerateResult,
    Raw,
    Reasoning,
    ResponseInfo,
    StreamPart,
    StreamStart,
    Text,
    ToolCall,
    Value,
    to_json,
)
from neurolink_mw.roles import RegexTransform, ResponsePolicy, TextTransform, Verdict, View, deny, replace
from neurolink_mw.testing import ScriptedModel

from .roles_kit import ASKED, STOP, WORD, Policy, Watch, deltas, no_bombs

ANSWER = GenerateResult(
    (Text(f"a {WORD} here"), Reasoning(f"think of a {WORD}")),
    response=ResponseInfo(id="r-1", body={"choices": [{"text": f"a {WORD} here"}]}),
)
PARTS: list[StreamPart] = [StreamStart(), Raw({"text": f"a {WORD}"}), *deltas("a bo", "mb", " here"), STOP]


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
    wrapped = wrap_model(ScriptedModel([parts]), [Policy(no_bombs)])
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
    parts: list[StreamPart] = [StreamStart(), raw, *deltas("all is well"), STOP]
    wrapped = wrap_model(ScriptedModel([parts, ANSWER.replace(content=(Text("fine"),))]), [Policy(no_bombs)])
    async with (await wrapped.do_stream(ASKED)).stream as stream:
        assert [part async for part in stream] == parts
    whole = await wrapped.do_generate(ASKED)
    assert whole.response == ANSWER.response
