"""Whole turns through boto3, against a server that enforces Converse's own rules."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pytest
from tests.loop.builders import ASKED, look, working

from neurolink_mw import Middleware, generate, stream, wrap_model
from neurolink_mw.errors import ContextOverflowError, InvalidRequestError
from neurolink_mw.loop import ContextGuard
from neurolink_mw.protocol import (
    CallOptions,
    FunctionTool,
    ResponseFormat,
    StreamPart,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolChoice,
    user,
)
from neurolink_mw.providers.bedrock import BedrockModel, BedrockTurnModel
from neurolink_mw.providers.bedrock.agentic_loop import run_agentic_loop
from neurolink_mw.providers.bedrock.bridge import build_v3_prompt_from_bedrock, unsent_bedrock_middleware_options
from neurolink_mw.roles import ResponsePolicy, TextTransform, Verdict, View, deny
from neurolink_mw.testing import check_stream
from neurolink_mw.testing.wire import HOLD, Reply, ScriptedServer, bedrock

from .wire_builders import client, until
from .wire_builders import model as model_of

pytestmark = pytest.mark.anyio

CALL = bedrock.ToolCall("look", {"at": "sea"}, "tooluse_1")
WEB = FunctionTool("web", {"type": "object"})
TWO_STEPS: Sequence[Any] = (bedrock.answer("Let me look.", reasoning="Hm.", tool_calls=[CALL]), bedrock.answer("Rain."))


@contextmanager
def serving(*replies: Any) -> Iterator[tuple[ScriptedServer, BedrockModel]]:
    with bedrock.server(replies) as server:
        yield server, model_of(server)


def operations(server: ScriptedServer) -> list[str]:
    return [bedrock.asked(exchange).operation for exchange in server.journal]


async def test_a_generated_turn_streams_nothing_and_replays_signed_reasoning() -> None:
    with serving(*TWO_STEPS) as (server, model):
        result = await generate(model, "Umbrella?", tools=[look])
        second = server.journal[1].json["messages"]
    assert (result.text, operations(server)) == ("Rain.", ["converse", "converse"])
    assert second[1]["content"][0]["reasoningContent"]["reasoningText"]["signature"] == bedrock.SIGNATURE
    assert second[2]["content"][0]["toolResult"]["content"] == [{"text": "saw sea"}]


async def test_a_streamed_turn_says_the_same() -> None:
    with serving(*TWO_STEPS) as (server, model):
        async with stream(model, "Umbrella?", tools=[look]) as turn:
            result = await turn.result()
    assert (result.text, operations(server)) == ("Rain.", ["converse-stream", "converse-stream"])
    assert [one.status for one in result.tool_executions] == ["ok"]


async def test_the_agentic_loop_takes_any_conversation_and_gives_it_back() -> None:
    picture = b"\x89PNG\r\n\x1a\n" + b"0" * 20
    earlier: list[dict[str, Any]] = [
        {"role": "user", "content": [{"text": "Look."}, {"image": {"format": "png", "source": {"bytes": picture}}}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t0", "name": "look", "input": {"at": "sky"}}}]},
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "t0", "content": [{"json": {"sky": "grey"}}], "status": "success"}},
                {"text": "And the sea?"},
                {"cachePoint": {"type": "default"}},
            ],
        },
    ]
    with serving(*TWO_STEPS) as (server, model):
        loop = run_agentic_loop(model, earlier, system=[{"text": "Be brief."}], tools=[look])
        said = "".join([chunk.content async for chunk in loop.stream])
        sent = server.journal[0].json
    assert said == "Let me look.Rain."
    assert sent["system"] == [{"text": "Be brief."}]
    assert sent["messages"][2] == earlier[2]
    assert loop.result.conversation[:3] == earlier
    assert [one["role"] for one in loop.result.conversation[3:]] == ["assistant", "user", "assistant"]


class Stars(TextTransform):
    lookahead = 6

    def transform(self, text: str) -> str:
        return text.replace("secret", "******")


async def test_a_redacting_guard_of_the_steps_keeps_the_text_out_of_the_next_request() -> None:
    with serving(bedrock.answer("A secret.", tool_calls=[CALL]), bedrock.answer("Done.")) as (server, model):
        turn = BedrockTurnModel(wrap_model(model, [Stars()]), tools=[look])
        made = await turn.run_stream(ASKED)
        async for _ in made.stream:
            pass
        assert made.loop is not None
        bodies = [json.dumps(exchange.json) for exchange in server.journal] + [str(made.loop.conversation)]
    assert not any("secret" in body for body in bodies)
    assert "A ******." in bodies[1]


class NoLooking(ResponsePolicy):
    sees = ("tool_input",)

    def check(self, view: View) -> Verdict:
        return deny("no", "Not that.")


@pytest.mark.parametrize("streams", [False, True])
async def test_a_guard_of_the_turn_that_denies_a_call_stops_the_tool_before_it_runs(streams: bool) -> None:
    tool = working("look", lambda given: pytest.fail("it ran"))
    with serving(*TWO_STEPS) as (server, model):
        turn = BedrockTurnModel(model, tools=[tool], middlewares=[NoLooking()])
        if streams:
            check_stream([part async for part in (await turn.do_stream(ASKED)).stream])
        else:
            assert (await turn.do_generate(ASKED)).finish_reason.unified == "stop"
        (result,) = server.journal[1].json["messages"][2]["content"]
    assert result["toolResult"]["content"] == [{"text": "Not that."}]


class Changes(Middleware):
    def __init__(self, change: Callable[[CallOptions], CallOptions]) -> None:
        self.change = change

    async def transform_params(self, options: CallOptions, kind: object, model: object) -> CallOptions:
        return self.change(options)


async def test_every_option_that_a_middleware_changes_and_converse_carries_reaches_the_wire() -> None:
    changes = Changes(
        lambda options: options.replace(
            prompt=[user("And tomorrow?")],
            max_output_tokens=7,
            temperature=0.0,
            top_p=0.5,
            top_k=3,
            stop_sequences=["END"],
            provider_options={"bedrock": {"requestMetadata": {"team": "weather"}}},
        )
    )
    with serving(bedrock.answer("Sun.")) as (server, model):
        await BedrockTurnModel(model, middlewares=[changes]).do_generate(ASKED)
        sent = server.journal[0].json
    assert sent["messages"] == [{"role": "user", "content": [{"text": "And tomorrow?"}]}]
    assert sent["inferenceConfig"] == {"maxTokens": 7, "temperature": 0.0, "topP": 0.5, "stopSequences": ["END"]}
    assert sent["additionalModelRequestFields"] == {"top_k": 3}
    assert sent["requestMetadata"] == {"team": "weather"}


async def test_what_a_middleware_of_the_turn_makes_of_its_tools_is_what_the_model_is_told() -> None:
    def shorter(options: CallOptions) -> CallOptions:
        tools = [tool for tool in options.tools or () if isinstance(tool, FunctionTool)]
        assert [tool.name for tool in tools] == ["look", "erase"]
        return options.replace(tools=[tools[0].replace(description="Looks."), WEB], tool_choice=ToolChoice("required"))

    erase = working("erase", lambda given: pytest.fail("it ran"))
    again = bedrock.answer(tool_calls=[CALL, replace(CALL, id="t2", name="erase")])
    with serving(again, bedrock.answer("Done.")) as (server, model):
        made = await BedrockTurnModel(model, tools=[look, erase], middlewares=[Changes(shorter)]).run_generate(ASKED)
        sent = server.journal[0].json["toolConfig"]
    assert [(one["toolSpec"]["name"], one["toolSpec"].get("description")) for one in sent["tools"]] == [
        ("look", "Looks."),
        ("web", None),
    ]
    assert sent["toolChoice"] == {"any": {}}
    assert made.loop is not None
    assert [(one.tool_name, one.status) for one in made.loop.tool_executions] == [("look", "ok"), ("erase", "error")]


async def test_the_shape_of_the_answer_reasoning_and_headers_reach_the_wire_too() -> None:
    schema: Any = {"type": "object", "properties": {"sky": {"type": "string"}}, "required": ["sky"]}
    changes = Changes(
        lambda options: options.replace(
            response_format=ResponseFormat("json", schema), reasoning="high", headers={"x-team": "weather"}
        )
    )
    with bedrock.server([bedrock.answer('{"sky": "grey"}')]) as server:
        model = BedrockModel("anthropic.claude-sonnet-4-5-20250929-v1:0", client=client(server.base_url))
        made = await BedrockTurnModel(model, middlewares=[changes]).do_generate(ASKED)
        asked = server.journal[0]
    assert made.text == '{"sky": "grey"}'
    assert json.loads(asked.json["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"])["required"] == [
        "sky"
    ]
    assert asked.json["additionalModelRequestFields"]["thinking"]["type"] == "enabled"
    assert asked.headers["x-team"] == "weather"


async def test_what_converse_cannot_carry_is_named_and_warned_about() -> None:
    options = ASKED.replace(seed=0, presence_penalty=0.1, frequency_penalty=0.2, temperature=0.5)
    with serving(bedrock.answer("Sun.")) as (_, model):
        made = await BedrockTurnModel(model).do_stream(options)
        head = await anext(aiter(made.stream))
        await made.stream.aclose()
    assert isinstance(head, StreamStart)
    assert sorted(str(warning.feature) for warning in head.warnings) == ["frequencyPenalty", "presencePenalty", "seed"]
    assert unsent_bedrock_middleware_options(options) == ["frequency_penalty", "presence_penalty", "seed"]


async def test_two_turns_on_one_model_never_see_each_other() -> None:
    def reply(request: Any) -> Reply:
        messages = request.json["messages"]
        asked = messages[0]["content"][0]["text"]
        if len(messages) == 1:
            call = bedrock.ToolCall("look", {"at": asked}, "tooluse_1")
            return bedrock.answer(tool_calls=[call])(request)
        return bedrock.answer(messages[2]["content"][0]["toolResult"]["content"][0]["text"])(request)

    with bedrock.server([reply], repeat="last") as server:
        turn = BedrockTurnModel(model_of(server), tools=[look])
        told: dict[str, str] = {}

        async def play(at: str) -> None:
            made = await turn.run_stream(CallOptions.from_text(at))
            parts = [part async for part in made.stream]
            told[at] = "".join(part.delta for part in parts if isinstance(part, TextDelta))
            assert made.loop is not None
            assert len(made.loop.conversation) == 4

        async with anyio.create_task_group() as tasks:
            for n in range(16):
                tasks.start_soon(play, f"place {n}")
    assert told == {at: f"saw {at}" for at in told}
    assert len(told) == 16


async def test_closing_the_wrapped_stream_closes_the_request() -> None:
    with serving(bedrock.answer(deltas=["Ha", HOLD, "lf"])) as (server, model):
        async with (await BedrockTurnModel(model, middlewares=[Changes(lambda o: o)]).do_stream(ASKED)).stream as parts:
            await _first_text(parts)
        exchange = await anyio.to_thread.run_sync(partial(server.wait_for_closed, 0))
    assert exchange.outcome == "client-closed"


async def test_a_cancelled_turn_closes_the_request() -> None:
    with serving(bedrock.answer(delay=HOLD)) as (server, model):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(BedrockTurnModel(model).do_generate, ASKED)
            await anyio.to_thread.run_sync(until, lambda: len(server.journal) == 1)
            tasks.cancel_scope.cancel()
        exchange = await anyio.to_thread.run_sync(partial(server.wait_for_closed, 0))
    assert exchange.outcome == "client-closed"


async def _first_text(parts: AsyncIterator[StreamPart]) -> None:
    async for part in parts:
        if isinstance(part, TextDelta):
            return


async def test_a_stream_that_is_cut_in_the_second_step_keeps_the_first() -> None:
    cut = bedrock.answer("Half an answer", cut_after=300)
    with serving(TWO_STEPS[0], cut) as (_, model):
        made = await BedrockTurnModel(model, tools=[look]).run_stream(ASKED)
        parts = [part async for part in made.stream]
    check_stream(parts)
    assert [part.tool_call_id for part in parts if isinstance(part, ToolCall)] == ["0-tooluse_1"]
    assert [part.type for part in parts[-2:]] == ["error", "finish"]


async def test_a_conversation_that_is_too_long_is_shortened_once_and_asked_again() -> None:
    too_long = bedrock.error(400, "ValidationException", "prompt is too long: 210000 tokens > 200000 maximum")
    read = working("read", lambda given: "line\n" * 3000)
    calls = [bedrock.answer(tool_calls=[bedrock.ToolCall("read", {}, f"tooluse_{n}")]) for n in range(6)]
    with serving(*calls, too_long, bedrock.answer("Done.")) as (server, model):
        result = await generate(model, "Read.", tools=[read], context_guard=ContextGuard(limits={"*": 10_000_000}))
        longest, shortened = (len(json.dumps(server.journal[number].json)) for number in (6, 7))
    assert result.text == "Done."
    assert shortened < longest


async def test_a_single_call_that_is_too_long_gets_the_figures() -> None:
    too_long = bedrock.error(400, "ValidationException", "prompt is too long: 210000 tokens > 200000 maximum")
    with serving(too_long) as (_, model), pytest.raises(ContextOverflowError) as caught:
        await model.do_generate(ASKED)
    assert (caught.value.prompt_tokens, caught.value.limit_tokens) == (210_000, 200_000)


async def test_a_call_without_a_result_is_refused_before_anything_is_sent() -> None:
    dangling = [
        {"role": "user", "content": [{"text": "Hi"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t0", "name": "look", "input": {}}}]},
        {"role": "user", "content": [{"text": "Well?"}]},
    ]
    options = CallOptions(build_v3_prompt_from_bedrock("", dangling), tools=[look.definition])
    with serving() as (server, model):
        with pytest.raises(InvalidRequestError, match=r"prompt\[1\]\.content\[0\].*no result"):
            await model.do_generate(options)
        assert len(server.journal) == 0
