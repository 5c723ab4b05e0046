"""Request policies: judged before the model is asked, the same for both calls."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from tests.pipeline.builders import ASKED

from neurolink_mw.errors import ConfigError, PolicyDenied
from neurolink_mw.pipeline import Rules, Use, wrap_model
from neurolink_mw.protocol import CallOptions, FilePart, Kind, SystemMessage, TextPart, UserMessage, user_text
from neurolink_mw.roles import Request, RequestPolicy, Verdict, allow, deny, flag, replace
from neurolink_mw.testing import ScriptedModel

from .builders import Asks, codes, decisions, fail, failures, gone, hang, streamed

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])


def says(verdict: Verdict) -> Callable[[Request], Verdict]:
    return lambda request: verdict


# -- what it sees


@both
async def test_it_sees_the_request_and_the_model(kind: Kind) -> None:
    seen: list[Request] = []

    def check(request: Request) -> Verdict:
        seen.append(request)
        return allow()

    options = CallOptions(
        (SystemMessage("Be kind."), UserMessage((TextPart("one"),)), UserMessage((TextPart("two"),))),
        metadata={"tenant": "acme"},
    )
    await gone(kind, [Asks(check)], "Hi", options)
    (request,) = seen
    assert (request.text, request.kind, request.provider, request.model_id) == (
        "one\ntwo",
        kind,
        "scripted",
        "scripted-1",
    )
    assert request.metadata == {"tenant": "acme"}
    assert "one" not in repr(request)


async def test_without_metadata_it_sees_none() -> None:
    def check(request: Request) -> Verdict:
        return allow() if request.metadata == {} else deny("metadata")

    assert (await gone("generate", [Asks(check)], "Hi"))[0].text == "Hi"


# -- what it says


@both
async def test_a_denied_request_reaches_no_model(kind: Kind) -> None:
    inside = ScriptedModel([])
    result, outcome = await gone(kind, [Asks(says(deny("closed", "Come back.")))], [])
    assert (result.text, result.finish_reason.unified, result.finish_reason.raw) == (
        "Come back.",
        "content-filter",
        "closed",
    )
    assert (outcome.status, outcome.model_calls, inside.calls) == ("denied", 0, [])
    assert [(one.action, one.code, one.subject) for one in decisions(outcome)] == [("denied", "closed", "request")]


@both
async def test_a_flagged_request_goes_on(kind: Kind) -> None:
    result, outcome = await gone(kind, [Asks(says(flag("odd")))], "Hi")
    assert (result.text, codes(outcome)) == ("Hi", [("flagged", "odd")])


@both
async def test_a_text_replaces_the_one_text_that_the_user_wrote(kind: Kind) -> None:
    options = CallOptions((SystemMessage("Be kind."), UserMessage((TextPart("secret"), FilePart("image/png", b"x")))))
    inside = ScriptedModel(["Hi"])
    model = wrap_model(inside, [Asks(says(replace("public")))])
    await (model.do_generate(options) if kind == "generate" else _read(model, options))
    (asked,) = inside.calls
    assert user_text(asked.options.prompt) == "public"
    assert [message.role for message in asked.options.prompt] == ["system", "user"]
    assert len(asked.options.prompt[1].content) == 2


async def _read(model: Any, options: CallOptions) -> None:
    async with (await model.do_stream(options)).stream as stream:
        async for _ in stream:
            pass


@both
@pytest.mark.parametrize("count", [0, 2])
async def test_with_several_texts_or_none_that_is_a_failure(kind: Kind, count: int) -> None:
    options = CallOptions([UserMessage((TextPart("a"),))] * count)
    result, outcome = await gone(kind, [Asks(says(replace("b")))], "Hi", options)
    assert (result.finish_reason.raw, [one.error for one in failures(outcome)]) == (
        "middleware-failed",
        ["ConfigError"],
    )


@both
async def test_options_replace_the_whole_request(kind: Kind) -> None:
    other = CallOptions.from_text("other")
    inside = ScriptedModel(["Hi"])
    model = wrap_model(inside, [Asks(says(replace(other)))])
    await (model.do_generate(ASKED) if kind == "generate" else _read(model, ASKED))
    assert user_text(inside.calls[0].options.prompt) == "other"


async def test_several_judge_one_after_the_other_from_the_outside_in() -> None:
    seen: list[str] = []

    def check(request: Request) -> Verdict:
        seen.append(request.text)
        return replace(request.text + "!")

    await gone("generate", [Asks(check, "one"), Asks(check, "two")], "Hi")
    assert seen == ["Hello", "Hello!"]


# -- how it may be written


class Called:
    async def __call__(self, request: Request) -> Verdict:
        await anyio.lowlevel.checkpoint()
        return deny("no")


async def in_time(request: Request) -> Verdict:
    return deny("no")


def later(request: Request) -> Awaitable[Verdict]:
    return in_time(request)


@both
@pytest.mark.parametrize(
    "check", [says(deny("no")), in_time, Called(), later], ids=["sync", "async", "object", "later"]
)
async def test_a_check_may_be_sync_or_async_or_return_an_awaitable(kind: Kind, check: Any) -> None:
    assert codes((await gone(kind, [Asks(check)], []))[1]) == [("denied", "no")]


# -- failures


@both
@pytest.mark.parametrize("said", [None, True, "deny", deny, 0], ids=["nothing", "bool", "text", "function", "number"])
async def test_what_is_no_verdict_is_a_failure_and_denies(kind: Kind, said: Any) -> None:
    result, outcome = await gone(kind, [Asks(lambda request: said)], [])
    assert (result.finish_reason.raw, outcome.status) == ("middleware-failed", "denied")
    assert [(one.error, one.handling) for one in failures(outcome)] == [("ConfigError", "deny")]


@both
async def test_a_replacement_that_is_neither_text_nor_options_is_a_failure(kind: Kind) -> None:
    result, _ = await gone(kind, [Asks(says(replace(5)))], [])  # type: ignore[arg-type]
    assert result.finish_reason.raw == "middleware-failed"


async def test_a_missing_return_is_named() -> None:
    with pytest.raises(ConfigError, match="is there a `return` missing"):
        await gone("generate", [Use(Asks(lambda request: None), on_error="raise")], [])


@both
async def test_a_check_that_raises_denies_and_its_text_is_told_to_nobody(
    kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    def leak(request: Request) -> Verdict:
        raise ValueError(request.text)

    result, outcome = await gone(kind, [Asks(leak)], [], CallOptions.from_text("my secret"))
    assert result.finish_reason.raw == "middleware-failed"
    assert "secret" not in caplog.text + repr(outcome) + repr(outcome.findings) + result.text + str(outcome.error)


@both
async def test_a_check_that_takes_too_long_denies(kind: Kind) -> None:
    result, outcome = await gone(kind, [Use(Asks(hang), timeout=0.01)], [])
    assert (result.finish_reason.raw, failures(outcome)[0].error) == ("middleware-failed", "TimeoutError")


@both
async def test_its_place_may_raise_instead(kind: Kind) -> None:
    with pytest.raises(RuntimeError, match="broken"):
        await gone(kind, [Use(Asks(fail), on_error="raise")], [])


@both
async def test_or_go_on_without_it(kind: Kind) -> None:
    result, outcome = await gone(kind, [Use(Asks(fail), on_error="skip")], "Hi")
    assert (result.text, outcome.status, failures(outcome)[0].handling) == ("Hi", "ok", "skip")


@both
async def test_a_blocking_check_runs_in_a_worker_thread(kind: Kind) -> None:
    threads: list[threading.Thread] = []

    def check(request: Request) -> Verdict:
        threads.append(threading.current_thread())
        return allow()

    await gone(kind, [Use(Asks(check), blocking=True)], "Hi")
    assert threads[0] is not threading.current_thread()


async def test_where_denials_are_raised_it_is_policy_denied() -> None:
    model = wrap_model(ScriptedModel([]), [Asks(says(deny("closed", "Come back.")))], denied="raise")
    with pytest.raises(PolicyDenied, match=r"Come back\.") as caught:
        await model.do_generate(ASKED)
    assert (caught.value.code, caught.value.by) == ("closed", "asks")


# -- shadow


@both
@pytest.mark.parametrize(
    ("verdict", "action"), [(deny("x"), "denied"), (replace("b", "x"), "replaced"), (flag("x"), "flagged")]
)
async def test_in_shadow_nothing_changes_and_the_finding_says_what_would_have(
    kind: Kind, verdict: Verdict, action: str
) -> None:
    inside = ScriptedModel(["Hi"])
    model = wrap_model(inside, [Use(Asks(says(verdict)), mode="shadow")])
    await (model.do_generate(ASKED) if kind == "generate" else _read(model, ASKED))
    assert inside.calls[0].options.prompt == ASKED.prompt
    result, outcome = await gone(kind, [Use(Asks(says(verdict)), mode="shadow")], "Hi")
    assert (result.text, outcome.status) == ("Hi", "ok")
    assert [(one.action, one.code, one.shadow) for one in decisions(outcome)] == [(action, "x", True)]


@both
@pytest.mark.parametrize("check", [fail, says(replace(5)), lambda request: None], ids=["raises", "replaces", "nothing"])  # type: ignore[arg-type]
async def test_in_shadow_a_failure_changes_nothing(kind: Kind, check: Any) -> None:
    result, outcome = await gone(kind, [Use(Asks(check), mode="shadow")], "Hi")
    assert (result.text, outcome.status) == ("Hi", "ok")
    assert [(one.handling, one.shadow) for one in failures(outcome)] == [("skip", True)]


async def test_one_policy_enforces_in_one_chain_and_watches_in_another_at_the_same_time() -> None:
    policy = Asks(says(deny("no", "No.")))
    enforcing = wrap_model(ScriptedModel(["Hi"] * 9), [policy])
    watching = wrap_model(ScriptedModel(["Hi"] * 9), [Use(policy, mode="shadow")])
    texts: dict[str, list[str]] = {"enforce": [], "shadow": []}

    async def ask(name: str, model: Any) -> None:
        for _ in range(4):
            texts[name].append((await model.do_generate(ASKED)).text)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "enforce", enforcing)
        tasks.start_soon(ask, "shadow", watching)
    assert texts == {"enforce": ["No."] * 4, "shadow": ["Hi"] * 4}


async def test_a_policy_in_its_shortest_form() -> None:
    class OfficeHours(RequestPolicy):
        def check(self, request: Request) -> Verdict:
            return deny("closed")

    assert OfficeHours().id == "office_hours"
    seen, _ = await streamed([OfficeHours()], [])
    assert [part.type for part in seen] == ["stream-start", "text-start", "text-delta", "text-end", "finish"]


def test_its_adapter_belongs_to_the_place() -> None:
    policy = Asks(says(allow()))
    assert policy.as_middleware(Rules()) is not policy.as_middleware(Rules())
