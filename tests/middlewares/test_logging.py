"""`logging`: one record for each call, however it ends, and no content unless it was asked for."""

from __future__ import annotations

import gc
import json
import logging
from typing import Any

import anyio
import pytest

from neurolink_mw import CallOptions, GenerateResult, LanguageModel, Middleware, Use, When, wrap_model
from neurolink_mw.errors import ConfigError, RateLimitError
from neurolink_mw.middlewares.logging import Logging
from neurolink_mw.protocol import (
    ErrorPart,
    Finish,
    FinishReason,
    InputTokens,
    OutputTokens,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    Usage,
)
from neurolink_mw.testing import HOLD, ScriptedModel

pytestmark = pytest.mark.anyio
ASKED = CallOptions.from_text("my secret question")
COST = Usage(InputTokens(12), OutputTokens(5), raw={"account": "secret account"})
ANSWER = GenerateResult((Text("a secret answer"),), FinishReason("stop"), COST)
LOGGER = "neurolink_mw.calls"


def parts(*texts: str, finish: Finish | None = None) -> list[StreamPart]:
    deltas = [TextDelta("0", text) for text in texts]
    return [StreamStart(), TextStart("0"), *deltas, TextEnd("0"), finish or Finish(FinishReason("stop"), COST)]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger=LOGGER)
    return caplog


def only_record(log: pytest.LogCaptureFixture) -> logging.LogRecord:
    (record,) = [record for record in log.records if record.name == LOGGER]
    return record


def call_of(record: logging.LogRecord) -> dict[str, Any]:
    call: dict[str, Any] = record.call  # type: ignore[attr-defined]  # an extra field
    return call


async def read(model: LanguageModel, options: CallOptions = ASKED) -> list[StreamPart]:
    result = await model.do_stream(options)
    async with result.stream as stream:
        return [part async for part in stream]


async def test_a_generated_answer_is_one_readable_line(log: pytest.LogCaptureFixture) -> None:
    await wrap_model(ScriptedModel([ANSWER]), [Logging()]).do_generate(ASKED)
    record = only_record(log)
    assert record.levelname == "INFO"
    assert record.getMessage().startswith("generate scripted:scripted-1 ok in 0.00")
    assert record.getMessage().endswith(" s, 12 tokens in, 5 out")


async def test_the_record_has_the_same_figures_as_data(log: pytest.LogCaptureFixture) -> None:
    await wrap_model(ScriptedModel([ANSWER]), [Logging()]).do_generate(ASKED)
    call = call_of(only_record(log))
    json.dumps(call)
    assert isinstance(call.pop("request_id"), str)
    assert 0 < call.pop("duration_s") < 60
    assert call == {
        "kind": "generate",
        "provider": "scripted",
        "model_id": "scripted-1",
        "status": "ok",
        "answered_by": "model",
        "finish_reason": "stop",
        "attempts": 1,
        "model_calls": 1,
        "parts": 0,
        "usage": {"inputTokens": {"total": 12}, "outputTokens": {"total": 5}},
        "error": None,
    }


async def test_a_stream_is_logged_once_at_its_end_with_its_parts(log: pytest.LogCaptureFixture) -> None:
    await read(wrap_model(ScriptedModel([parts("a", "b")]), [Logging()]))
    call = call_of(only_record(log))
    assert (call["kind"], call["status"], call["parts"]) == ("stream", "ok", 6)


async def test_a_failure_is_logged_by_its_kind_and_never_by_its_words(log: pytest.LogCaptureFixture) -> None:
    model = wrap_model(ScriptedModel([RateLimitError("key sk-secret is over its limit", status=429)]), [Logging()])
    with pytest.raises(RateLimitError):
        await model.do_generate(ASKED)
    record = only_record(log)
    assert record.levelname == "WARNING"
    assert record.getMessage().endswith("RateLimitError")
    assert (call_of(record)["status"], call_of(record)["error"]) == ("error", "RateLimitError")
    assert "secret" not in f"{record.getMessage()} {record.__dict__}"


async def test_an_error_part_is_a_failure(log: pytest.LogCaptureFixture) -> None:
    script = [*parts("half")[:-1], ErrorPart(RateLimitError("x")), Finish(FinishReason("error"))]
    await read(wrap_model(ScriptedModel([script]), [Logging()]))
    assert (call_of(only_record(log))["status"], only_record(log).levelname) == ("error", "WARNING")


async def test_a_stream_that_the_caller_leaves_is_logged_as_abandoned(log: pytest.LogCaptureFixture) -> None:
    result = await wrap_model(ScriptedModel([parts("a", "b")]), [Logging()]).do_stream(ASKED)
    async with result.stream as stream:
        async for _ in stream:
            break
    assert (call_of(only_record(log))["status"], only_record(log).levelname) == ("abandoned", "INFO")


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_cancelled_call_is_logged_as_cancelled(log: pytest.LogCaptureFixture, streamed: bool) -> None:
    script: list[Any] = [StreamStart(), TextStart("0"), TextDelta("0", "a"), HOLD]
    model = wrap_model(ScriptedModel([script]), [Logging()])

    async def call() -> None:
        await (read(model) if streamed else model.do_generate(ASKED))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert call_of(only_record(log))["status"] == "cancelled"


async def test_whoever_answered_in_place_of_the_model_is_named(log: pytest.LogCaptureFixture) -> None:
    class Canned(Middleware):
        may_answer = True

        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            return ANSWER

    await wrap_model(ScriptedModel([]), [Logging(), Canned()]).do_generate(ASKED)
    assert "answered by canned" in only_record(log).getMessage()
    assert (call_of(only_record(log))["answered_by"], call_of(only_record(log))["model_calls"]) == ("canned", 0)


@pytest.mark.parametrize("streamed", [False, True])
async def test_no_content_is_logged_unless_it_is_asked_for(log: pytest.LogCaptureFixture, streamed: bool) -> None:
    model = wrap_model(ScriptedModel([ANSWER]), [Logging()])
    options = ASKED.replace(
        metadata={"note": "secret note"}, headers={"authorization": "secret"}, provider_options={"a": {"k": "secret"}}
    )
    await (read(model, options) if streamed else model.do_generate(options))
    record = only_record(log)
    assert "secret" not in f"{record.getMessage()} {record.__dict__}"


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_question_and_the_answer_are_logged_where_content_is_asked_for(
    log: pytest.LogCaptureFixture, streamed: bool
) -> None:
    model = wrap_model(ScriptedModel([ANSWER]), [Logging(content=True)])
    await (read(model) if streamed else model.do_generate(ASKED))
    call = call_of(only_record(log))
    assert (call["prompt"], call["answer"]) == ("my secret question", "a secret answer")
    assert "secret" not in only_record(log).getMessage()


async def test_the_question_of_a_failed_call_is_logged_without_an_answer(log: pytest.LogCaptureFixture) -> None:
    model = wrap_model(ScriptedModel([RateLimitError("x")]), [Logging(content=True)])
    with pytest.raises(RateLimitError):
        await model.do_generate(ASKED)
    call = call_of(only_record(log))
    assert (call["prompt"], "answer" in call) == ("my secret question", False)


async def test_content_of_concurrent_calls_is_never_mixed_up(log: pytest.LogCaptureFixture) -> None:
    def echo(options: CallOptions) -> str:
        (message,) = options.prompt
        return f"answer to {message.content[0].text}"  # type: ignore[union-attr]  # a user's text

    model = wrap_model(ScriptedModel([echo], repeat=True), [Logging(content=True)])
    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(read, model, CallOptions.from_text(str(number)))
    logged = {(call_of(record)["prompt"], call_of(record)["answer"]) for record in log.records}
    assert logged == {(str(number), f"answer to {number}") for number in range(8)}


async def test_only_chosen_keys_of_the_metadata_are_logged(log: pytest.LogCaptureFixture) -> None:
    model = wrap_model(ScriptedModel([ANSWER]), [Logging(metadata=["tenant", "tags", "absent"])])
    await model.do_generate(ASKED.replace(metadata={"tenant": "a", "tags": {"x": [1]}, "email": "secret"}))
    call = call_of(only_record(log))
    chosen = {key: value for key, value in call.items() if key.startswith("metadata.")}
    assert json.loads(json.dumps(chosen)) == {"metadata.tenant": "a", "metadata.tags": {"x": [1]}}


async def test_logger_and_levels_are_chosen(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="acme.audit")
    logs = Logging(logger="acme.audit", level="DEBUG", problem_level="CRITICAL")
    model = wrap_model(ScriptedModel([ANSWER, RateLimitError("x")]), [logs])
    await model.do_generate(ASKED)
    with pytest.raises(RateLimitError):
        await model.do_generate(ASKED)
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("acme.audit", "DEBUG"),
        ("acme.audit", "CRITICAL"),
    ]


def test_an_unknown_level_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="level: input should be 'DEBUG', 'INFO', 'WARNING', 'ERROR' or 'CRITICAL'"):
        Logging(level="LOUD")


async def test_it_stands_where_it_is_told_to_and_only_for_the_model_it_is_meant_for(
    log: pytest.LogCaptureFixture,
) -> None:
    elsewhere = Use(Logging(), when=When(provider="bedrock*"))
    await wrap_model(ScriptedModel([ANSWER]), [elsewhere]).do_generate(ASKED)
    assert log.records == []


@pytest.mark.parametrize("level", ["DEBUG", "CRITICAL"])
async def test_nothing_is_kept_after_a_call(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where the record was written nor where its level is switched off."""
    logger = logging.getLogger("acme.forgetful")
    monkeypatch.setattr(logger, "propagate", False)  # pytest keeps every record that it sees
    logger.addHandler(logging.NullHandler())
    logger.setLevel(level)
    model = wrap_model(ScriptedModel(["a marked answer"], repeat=True), [Logging(logger=logger.name, content=True)])
    for _ in range(20):
        await read(model)
    gc.collect()
    kept = [one for one in gc.get_objects() if isinstance(one, dict) and one.get("answer") == "a marked answer"]
    assert kept == []
