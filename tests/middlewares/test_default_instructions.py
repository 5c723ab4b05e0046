"""`default_instructions`: a prompt without a system message gets one, and no other prompt changes."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw import CallOptions, wrap_model
from neurolink_mw.errors import ConfigError
from neurolink_mw.middlewares.default_instructions import DefaultInstructions
from neurolink_mw.protocol import AssistantMessage, Message, SystemMessage, TextPart, user
from neurolink_mw.testing import ScriptedModel, check_middleware

pytestmark = pytest.mark.anyio
BRIEF = DefaultInstructions(instructions="Be brief.")
TALK: tuple[Message, ...] = (user("Hello"), AssistantMessage([TextPart("Hi")]), user("And now?"))


async def sent(member: DefaultInstructions, options: CallOptions) -> CallOptions:
    bare = ScriptedModel("hi")
    await wrap_model(bare, [member]).do_generate(options)
    return bare.calls[0].options


async def test_a_prompt_without_a_system_message_gets_one_in_front() -> None:
    assert (await sent(BRIEF, CallOptions(TALK))).prompt == (SystemMessage("Be brief."), *TALK)


async def test_each_of_several_texts_is_a_message_in_their_order() -> None:
    member = DefaultInstructions(instructions=["Be brief.", "Be kind."])
    assert (await sent(member, CallOptions(TALK))).prompt == (
        *(SystemMessage("Be brief."), SystemMessage("Be kind.")),
        *TALK,
    )


@pytest.mark.parametrize("place", range(len(TALK) + 1))
async def test_a_system_message_at_any_place_is_the_callers_own_instruction(place: int) -> None:
    options = CallOptions((*TALK[:place], SystemMessage("Mine."), *TALK[place:]))
    assert await sent(BRIEF, options) == options


async def test_a_system_message_without_words_is_one_too() -> None:
    options = CallOptions((SystemMessage(""), *TALK))
    assert await sent(BRIEF, options) == options


async def test_an_empty_list_changes_nothing() -> None:
    assert await sent(DefaultInstructions(instructions=[]), CallOptions(TALK)) == CallOptions(TALK)


async def test_an_empty_prompt_gets_them_too() -> None:
    assert (await sent(BRIEF, CallOptions([]))).prompt == (SystemMessage("Be brief."),)


async def test_the_options_that_were_given_are_not_changed_and_nothing_else_in_them() -> None:
    options = CallOptions(TALK, temperature=0, metadata={"tenant": "acme"})
    seen = await sent(BRIEF, options)
    assert options == CallOptions(TALK, temperature=0, metadata={"tenant": "acme"})
    assert seen.replace(prompt=TALK) == options


async def test_nothing_is_added_twice_where_a_prompt_comes_through_again() -> None:
    again = await sent(BRIEF, await sent(BRIEF, CallOptions(TALK)))
    assert again.prompt == (SystemMessage("Be brief."), *TALK)


async def test_a_stream_gets_the_same_instructions() -> None:
    bare = ScriptedModel("hi")
    async with (await wrap_model(bare, [BRIEF]).do_stream(CallOptions(TALK))).stream:
        assert bare.calls[0].options.prompt == (SystemMessage("Be brief."), *TALK)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "instructions: field required"),
        ({"instructions": ""}, "instructions.*at least 1 character"),
        ({"instructions": ["Be brief.", ""]}, r"instructions.*\.1: string should have at least 1 character"),
        ({"instructions": 5}, "instructions.*valid string"),
        ({"instruction": "x"}, "instruction: there is no such option; did you mean 'instructions'"),
    ],
)
def test_a_bad_option_is_found_when_the_member_is_made(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        DefaultInstructions(**config)


def test_instructions_are_not_shown() -> None:
    assert "brief" not in repr(BRIEF) + repr(BRIEF.config)


def test_it_keeps_the_contract_of_middlewares() -> None:
    check_middleware(lambda: DefaultInstructions(instructions="Be brief."))
