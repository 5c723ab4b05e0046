"""Settings of roles that cannot work are refused when the chain is built, with what to do instead."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.pipeline import Use, wrap_model
from neurolink_mw.protocol import CallOptions
from neurolink_mw.roles import (
    Hold,
    Pass,
    Request,
    RequestPolicy,
    ResponsePolicy,
    Streaming,
    TextTransform,
    Verdict,
    View,
    Window,
    allow,
    deny,
    flag,
    replace,
)
from neurolink_mw.testing import ScriptedModel

from .builders import Asks, Policy, Rewrites, bomb


async def slowly(subject: object) -> Verdict:
    return allow()


def pieces(subject: object) -> Any:
    yield allow()


def refused(member: Any, advice: str) -> None:
    with pytest.raises(ConfigError, match=advice):
        wrap_model(ScriptedModel([]), [member])


# -- policies


def test_a_policy_without_a_check() -> None:
    for base in (RequestPolicy, ResponsePolicy):
        refused(type("Idle", (base,), {})(), r"Idle has no check\(\): a policy says what it allows")


@pytest.mark.parametrize("make", [Asks, Policy])
@pytest.mark.parametrize(
    ("check", "advice"), [("deny", r"check is not callable: str"), (pieces, r"check has a `yield` in it")]
)
def test_a_check_that_cannot_be_asked(make: Any, check: Any, advice: str) -> None:
    refused(make(check), advice)


@pytest.mark.parametrize("make", [Asks, Policy])
def test_blocking_for_a_check_that_is_async(make: Any) -> None:
    with pytest.raises(ConfigError, match="blocking moves a sync check to a worker thread, and this one is async"):
        Use(make(slowly), blocking=True)


@pytest.mark.parametrize(
    ("mode", "advice"),
    [
        (Hold, r"Policy\.streaming is an instance: write Hold\(\)"),
        (Pass, r"Policy\.streaming is an instance: write Pass\(\)"),
        (Window, r"Policy\.streaming is an instance: write Window\(n\)"),
        ("hold", r"Policy\.streaming is Hold\(\), Window\(n\) or Pass\(\), not str"),
        (None, r"Policy\.streaming is Hold\(\), Window\(n\) or Pass\(\), not NoneType"),
        (5, r"Policy\.streaming is Hold\(\), Window\(n\) or Pass\(\), not int"),
    ],
)
def test_a_mode_that_is_none(mode: Any, advice: str) -> None:
    refused(Policy(bomb, mode), advice)


@pytest.mark.parametrize(
    ("sees", "advice"),
    [
        ("text", r"Policy\.sees is a list of text, reasoning, tool_input, not one string"),
        (None, r"Policy\.sees is a list of text, reasoning, tool_input, not NoneType"),
        (["texts"], r"Policy\.sees cannot name 'texts'.*text"),
        ([5], r"Policy\.sees cannot name 5"),
        ([], r"Policy\.sees is empty: a policy judges one of text, reasoning, tool_input"),
    ],
)
def test_channels_that_there_are_not(sees: Any, advice: str) -> None:
    refused(Policy(bomb, sees=sees), advice)


@pytest.mark.parametrize("sees", [("text",), ["text"], {"text"}, frozenset({"text"})])
def test_any_collection_of_channels_will_do(sees: Any) -> None:
    assert wrap_model(ScriptedModel([]), [Policy(bomb, sees=sees)])


# -- transforms


def test_a_transform_without_a_transform() -> None:
    class Idle(TextTransform):
        lookahead = 4

    refused(Idle(), r"Idle has no transform\(\): it says what becomes of a text")


@pytest.mark.parametrize("lookahead", [None, 0, -1, True, 2.5, "64"])
def test_a_sync_one_without_its_lookahead(lookahead: Any) -> None:
    refused(
        Rewrites(str.upper, lookahead), r"Rewrites\.lookahead says how many characters a match can reach.*from 1 on"
    )


def test_an_async_one_needs_none() -> None:
    async def upper(text: str) -> str:
        return text.upper()

    assert wrap_model(ScriptedModel([]), [Rewrites(upper)])


@pytest.mark.parametrize(
    ("applies_to", "advice"),
    [
        ("text", r"Rewrites\.applies_to is a list of text, reasoning, tool_input, not one string"),
        (None, r"Rewrites\.applies_to is a list of text, reasoning, tool_input, not NoneType"),
        (["tool_call"], r"Rewrites\.applies_to cannot name 'tool_call'"),
        ([], r"Rewrites\.applies_to is empty: a transform rewrites one of"),
    ],
)
def test_a_transform_of_channels_that_there_are_not(applies_to: Any, advice: str) -> None:
    refused(Rewrites(str.upper, 1, applies_to), advice)


def test_blocking_for_a_transform() -> None:
    with pytest.raises(ConfigError, match="blocking is not for a transform, which runs at every piece: make it async"):
        Use(Rewrites(str.upper, 1), blocking=True)


# -- all of them


@pytest.mark.parametrize("cls", [Asks, Policy, Rewrites])
def test_a_class_instead_of_an_instance(cls: type) -> None:
    refused(cls, f"{cls.__name__} is a class: give an instance")


def test_settings_may_be_made_on_the_instance_or_in_the_class() -> None:
    class Short(ResponsePolicy):
        streaming: Streaming = Window(4)
        sees = ("text",)
        allow_partial_release = True

        def check(self, view: View) -> Verdict:
            return bomb(view)

    made = Short()
    made.streaming = Hold()
    assert wrap_model(ScriptedModel([]), [Short()])
    assert made.as_middleware(Use(made).rules).about is None


# -- what verdicts and views show


def test_neither_verdicts_nor_views_show_a_text() -> None:
    request = Request(CallOptions.from_text("my secret"), "generate", "acme", "acme-1")
    shown = [
        repr(one)
        for one in (
            *(deny("code", "a secret"), replace("a secret"), flag("code"), allow()),
            *(request, View("text", "a secret", request), View("reasoning", "a secret", request)),
        )
    ]
    assert not any("secret" in one for one in shown)
    assert "code='code'" in shown[0]


def test_a_denial_without_words_has_some() -> None:
    assert deny("x").message == "This request was refused by policy."
