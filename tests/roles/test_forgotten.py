"""What an author forgets is refused when the class is defined, or fails in the policy's own name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.pipeline import Outcome, wrap_model
from neurolink_mw.protocol import (
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from neurolink_mw.roles import (
    Observer,
    Pass,
    RegexTransform,
    RequestPolicy,
    ResponsePolicy,
    TextTransform,
    Verdict,
    View,
    deny,
    flag,
    replace,
)
from neurolink_mw.testing import ScriptedModel, check_stream

from .builders import Policy, gone, streamed, whole


@pytest.mark.parametrize("base", [RequestPolicy, ResponsePolicy])
def test_a_check_that_takes_other_arguments(base: Any) -> None:
    with pytest.raises(ConfigError, match=r"Short.check is called as check\((request|view)\)"):

        class Short(base):  # type: ignore[misc]
            def check(self) -> Verdict:
                return deny("never")


@pytest.mark.parametrize("base", [RequestPolicy, ResponsePolicy])
def test_a_check_that_never_returns_anything(base: Any) -> None:
    with pytest.raises(ConfigError, match=r"Silent.check never returns anything: is there a `return` missing"):

        class Silent(base):  # type: ignore[misc]
            async def check(self, view: View) -> None:
                deny("forgotten")


def test_a_transform_that_never_returns_anything() -> None:
    with pytest.raises(ConfigError, match=r"Silent.transform never returns anything"):

        class Silent(TextTransform):
            lookahead = 4

            def transform(self, text: str) -> str:  # type: ignore[return]
                text.upper()


def test_a_misspelt_method_of_an_observer() -> None:
    with pytest.raises(ConfigError, match=r"Misspelt.on_outcom is never called; did you mean 'on_outcome'"):

        class Misspelt(Observer):
            def on_part(self, part: StreamPart) -> None: ...

            def on_outcom(self, outcome: Outcome) -> None: ...


def test_an_outcome_that_is_told_to_a_generator() -> None:
    class Yields(Observer):
        async def on_outcome(self, outcome: Outcome) -> AsyncIterator[None]:  # type: ignore[override]
            yield

    with pytest.raises(ConfigError, match="has a `yield` in it"):
        wrap_model(ScriptedModel("Hi"), [Yields()])


@pytest.mark.parametrize("code", [None, "", 7])
def test_a_code_that_is_no_text(code: Any) -> None:
    for verdict in (deny, flag):
        with pytest.raises(ValueError, match="the code of a verdict is a text"):
            verdict(code)
    with pytest.raises(ValueError, match="the code of a verdict is a text"):
        replace("text", code)


@pytest.mark.anyio
async def test_a_message_that_is_none_fails_the_policy_which_then_denies() -> None:
    _, outcome = await gone("generate", [Policy(lambda view: deny("code", None))], whole())  # type: ignore[arg-type]
    assert outcome.finish_reason is not None
    assert (outcome.status, outcome.finish_reason.raw) == ("denied", "middleware-failed")


@pytest.mark.anyio
async def test_the_refusals_block_has_an_id_of_its_own_whatever_ids_the_model_uses() -> None:
    taken = "neurolink_mw.refusal"
    parts: list[StreamPart] = [
        TextStart(taken),
        TextDelta(taken, "a"),
        TextEnd(taken),
        TextStart("0"),
        TextDelta("0", "b"),
    ]
    seen, _ = await streamed([Policy(lambda view: deny("no"), Pass())], whole(parts))
    check_stream(seen)


@pytest.mark.anyio
@pytest.mark.parametrize("kinds", [("text",), ("reasoning",)])
async def test_a_piece_that_comes_before_its_block_begins_is_rewritten_with_it(kinds: tuple[str, ...]) -> None:
    early: list[StreamPart] = (
        [TextDelta("0", "bomb"), TextStart("0"), TextEnd("0")]
        if kinds == ("text",)
        else [ReasoningDelta("0", "bomb"), ReasoningStart("0"), ReasoningEnd("0")]
    )
    seen, _ = await streamed([RegexTransform("bomb", "****", applies_to=kinds)], whole(early))
    assert "bomb" not in "".join(str(getattr(part, "delta", "")) for part in seen)
    assert any(getattr(part, "delta", "") == "****" for part in seen)
    assert isinstance(seen[0], StreamStart)
