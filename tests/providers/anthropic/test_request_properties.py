"""Any prompt makes a request that the API's own types take, with every call answered, or is refused by its place."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import CallOptions, Message, ToolChoice
from neurolink_mw.providers.anthropic.request import BETAS
from neurolink_mw.testing.wire.anthropic_rules import faults

from .builders import FINDER, HAIKU, LOOK, SONNET_4, SONNET_46, Json, as_json, own, warned
from .prompts import PROMPTS

TOOLS = (LOOK, FINDER, LOOK.replace(name="a.look"))


@settings(max_examples=200, deadline=None)
@given(PROMPTS)
def test_any_prompt_keeps_the_rules_of_the_api_or_is_refused_by_its_place(prompt: list[Message]) -> None:
    for model_id, more in ((HAIKU, {}), (SONNET_4, {"response_format": as_json()})):
        try:
            native, _ = warned(CallOptions(prompt, tools=TOOLS, **more), model_id)  # type: ignore[arg-type]  # as named
        except InvalidRequestError as error:
            assert str(error).startswith("prompt")  # noqa: PT017  # either outcome is right
            continue
        _keeps_the_rules(native)


BUDGET = {"type": "enabled", "budgetTokens": 2000}
THINKING = [(HAIKU, BUDGET), ("claude-mythos-preview", BUDGET), ("glm-5", BUDGET), (SONNET_46, {"type": "adaptive"})]


@settings(max_examples=200, deadline=None)
@given(PROMPTS, st.sampled_from(THINKING), st.booleans(), st.none() | st.sampled_from(["auto", "none", "required"]))
def test_with_thinking_on_any_history_keeps_the_rules_of_the_api(
    prompt: list[Message], thinking: tuple[str, Json], send_reasoning: bool, choice: str | None
) -> None:
    model_id, config = thinking
    call = CallOptions(
        prompt,
        tools=TOOLS,
        tool_choice=None if choice is None else ToolChoice(choice),
        temperature=0.2,
        # A system message in its place is for some models alone.
        provider_options=own(thinking=config, sendReasoning=send_reasoning, lateSystemMessages="user"),
    )
    try:
        native, _ = warned(call, model_id)
    except InvalidRequestError as error:
        assert str(error).startswith("prompt")  # noqa: PT017  # either outcome is right
        return
    betas = native.pop(BETAS, ())
    # Calls that the service runs have ids of its own, which come twice in these prompts alone.
    assert [fault for fault in faults(native, betas=betas) if "ids must be unique" not in fault] == []


def _keeps_the_rules(native: Json) -> None:
    messages: list[Json] = native["messages"]
    roles = [message["role"] for message in messages]
    assert all(one != two for one, two in pairwise(roles)), "neighbours of one role are joined"
    assert all(message["content"] for message in messages), "no message without content"
    blocks = [block for message in messages for block in message["content"]]
    assert all(block["text"].strip() for block in blocks if block["type"] == "text"), "no blank text"
    assert sum("cache_control" in block for block in [*native.get("system", []), *blocks, *native["tools"]]) <= 4
    for number, message in enumerate(messages):
        asked = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        following = messages[number + 1]["content"] if number + 1 < len(messages) else []
        answered = [block["tool_use_id"] for block in following if block["type"] == "tool_result"]
        assert [block["type"] for block in following[: len(asked)]] == ["tool_result"] * len(asked)
        if message["role"] == "assistant":
            assert answered == asked, "every call is answered once, in order, at the beginning of the next message"
