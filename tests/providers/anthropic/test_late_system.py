"""System messages among the others, where the API does not take them there."""

from __future__ import annotations

import pytest
from tests.testing.wire import anthropic_clients

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import AssistantMessage, CallOptions, SystemMessage, TextPart, collect, user
from neurolink_mw.providers.anthropic import AnthropicModel
from neurolink_mw.testing.wire import anthropic, anthropic_server

pytestmark = pytest.mark.anyio

REFUSED = anthropic.error(400, "messages.1: role 'system' is not supported on this model")
LATE = CallOptions(
    (
        SystemMessage("Be brief."),
        user("Hi"),
        SystemMessage("Be kind."),
        AssistantMessage([TextPart("Yes?")]),
        user("Go."),
    )
)
AS_TEXT = [{"type": "text", "text": "Hi"}, {"type": "text", "text": "Be kind."}]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_refused_one_is_sent_once_more_as_the_users_text_with_a_warning(streamed: bool) -> None:
    with anthropic_server([REFUSED, anthropic.answer("ok")]) as server:
        async with anthropic_clients.own(server) as client:
            model = AnthropicModel("claude-haiku-4-5", client=client)
            if streamed:
                answer = collect([part async for part in (await model.do_stream(LATE)).stream])
            else:
                answer = await model.do_generate(LATE)
    assert answer.text == "ok"
    assert [(warning.type, warning.feature) for warning in answer.warnings] == [("compatibility", "system message")]
    first, second = (exchange.json["messages"] for exchange in server.journal)
    assert [message["role"] for message in first] == ["user", "system", "assistant", "user"]
    assert [message["role"] for message in second] == ["user", "assistant", "user"]
    assert second[0]["content"] == AS_TEXT


async def test_one_at_a_place_that_the_api_does_not_take_is_repaired_as_well() -> None:
    prompt = (user("Hi"), SystemMessage("Be kind."), user("Go."))
    with anthropic_server([anthropic.answer("ok")]) as server:
        async with anthropic_clients.own(server) as client:
            answer = await AnthropicModel("claude-opus-4-8", client=client).do_generate(CallOptions(prompt))
    assert answer.text == "ok"
    assert server.journal[1].json["messages"][0]["content"] == [*AS_TEXT, {"type": "text", "text": "Go."}]


async def test_a_call_that_says_how_needs_no_repair() -> None:
    options = LATE.replace(provider_options={"anthropic": {"lateSystemMessages": "user"}})
    with anthropic_server([anthropic.answer("ok")]) as server:
        async with anthropic_clients.own(server) as client:
            await AnthropicModel("claude-haiku-4-5", client=client).do_generate(options)
    assert len(server.journal) == 1
    assert server.journal[0].json["messages"][0]["content"] == AS_TEXT


async def test_a_refusal_of_anything_else_is_raised() -> None:
    other = anthropic.error(400, "messages.0.content: Field required")
    with anthropic_server([other]) as server:
        async with anthropic_clients.own(server) as client:
            with pytest.raises(InvalidRequestError):
                await AnthropicModel("claude-haiku-4-5", client=client).do_generate(LATE)
    assert len(server.journal) == 1
