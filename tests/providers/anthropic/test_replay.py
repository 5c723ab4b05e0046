"""Replay: what the API answered goes back as it came, with signatures, encrypted pages and all.

An answer becomes a prompt as the loop does it. What a request cannot hold, since its types lack it, is left out there.
"""

from __future__ import annotations

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from neurolink_mw.loop.messages import messages_of, tool_message
from neurolink_mw.protocol import CallOptions, GenerateResult, Message, ProviderTool, TextOutput, collect
from neurolink_mw.providers.anthropic.request import BETAS, expected_of
from neurolink_mw.providers.anthropic.response import parse_response
from neurolink_mw.testing.wire.anthropic_rules import faults

from .builders import FINDER, LOOK, RUNNER, Json, options, said, warned
from .events import events_of, mcp_result, mcp_use, message, parts_of, redacted, server_result, server_use, text, use
from .events import thinking as thought
from .prompts import ANSWERS

SHELL = ProviderTool("anthropic.bash_20250124", "shell")
TOOLS = (LOOK, FINDER, RUNNER, SHELL, ProviderTool("anthropic.tool_search_tool_bm25_20251119", "search"))
CONVERSATION = [
    thought("first", "S1"),
    redacted("RD"),
    text("I look it up."),
    server_use("s1", "web_search"),
    server_result("s1", "web_search"),
    thought("", "S2"),
    mcp_use("m1"),
    mcp_result("m1"),
    use("c1", "look"),
    use("c2", "bash", {"command": "ls"}),
]


def without_thoughts_at_the_end(blocks: list[Json]) -> list[Json]:
    """The API takes none there."""
    end = len(blocks)
    while end and blocks[end - 1]["type"] in ("thinking", "redacted_thinking"):
        end -= 1
    return blocks[:end]


def call(*prompt: Message) -> CallOptions:
    return options(*prompt, tools=TOOLS)


def read(blocks: list[Json]) -> GenerateResult:
    asked = call(said("q"))
    return parse_response(message(*blocks), expected=expected_of(asked, warned(asked)[0]))


def read_streamed(blocks: list[Json], size: int) -> GenerateResult:
    asked = call(said("q"))
    return collect(parts_of(*events_of(message(*blocks), size), expected=expected_of(asked, warned(asked)[0])))


def continued(answer: GenerateResult) -> list[Message]:
    """The prompt that follows an answer: its calls are answered, and the user goes on."""
    calls = [one for one in answer.tool_calls if not one.provider_executed]
    results = [tool_message(calls, [TextOutput("found")] * len(calls))] if calls else []
    return [said("q"), *messages_of(answer.content), *results, said("go on")]


def sent_back(answer: GenerateResult) -> list[Json]:
    """The blocks of the assistant's message in the next request."""
    native, warnings = warned(call(*continued(answer)))
    assert all("at the end of an answer" in (warning.message or "") for warning in warnings)
    assert faults({name: item for name, item in native.items() if name != BETAS}, betas=native.get(BETAS, ())) == []
    _, assistant, user = native["messages"]
    uses = [block["id"] for block in assistant["content"] if block["type"] == "tool_use"]
    assert [block["tool_use_id"] for block in user["content"] if block["type"] == "tool_result"] == uses
    content: list[Json] = assistant["content"]
    return content


@settings(max_examples=150, deadline=None)
@given(ANSWERS)
@example(CONVERSATION)
def test_an_answer_goes_back_as_it_came(blocks: list[Json]) -> None:
    whole = without_thoughts_at_the_end(blocks)
    assume(whole)
    first = sent_back(read(blocks))
    assert first == whole
    assert sent_back(read(first)) == first


@settings(max_examples=100, deadline=None)
@given(ANSWERS, st.integers(1, 5))
@example(CONVERSATION, 3)
def test_a_streamed_answer_goes_back_as_it_came(blocks: list[Json], size: int) -> None:
    whole = without_thoughts_at_the_end(blocks)
    assume(whole)
    assert sent_back(read_streamed(blocks, size)) == whole
