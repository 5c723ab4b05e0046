"""The guard of prompts: what stays, what becomes a preview, what goes, and that nothing is orphaned."""

from __future__ import annotations

import pytest

from neurolink_mw.loop_guard import LoopGuardPolicy, PromptGuard, Reclaimed
from neurolink_mw.protocol import (
    AssistantMessage,
    ContentOutput,
    ErrorJsonOutput,
    ErrorTextOutput,
    FilePart,
    Message,
    OutputImageData,
    OutputText,
    SystemMessage,
    TextOutput,
    TextPart,
    ToolApprovalResponsePart,
    ToolCallPart,
    ToolMessage,
    ToolOutput,
    ToolResultPart,
    UnknownPart,
    UserMessage,
    user,
)

from .builders import answered, asked, exchange, ids_of

SHORT = "x" * 2000  # not longer than a preview, so that only dropping helps


def reclaim(*prompt: Message, available: int = 1000, tail: int = 0, **settings: bool) -> Reclaimed[Message]:
    policy = LoopGuardPolicy(available, protected_tail_count=tail)
    return PromptGuard(policy.replace(**settings)).reclaim(prompt)


def outputs_of(reclaimed: Reclaimed[Message]) -> list[ToolOutput]:
    return [
        part.output
        for message in reclaimed.messages
        if isinstance(message, ToolMessage)
        for part in message.content
        if isinstance(part, ToolResultPart)
    ]


def test_a_prompt_that_fits_is_the_same_tuple() -> None:
    prompt = (user("task"), *exchange("a"), *exchange("b"))
    assert PromptGuard(LoopGuardPolicy(3000)).reclaim(prompt).messages is prompt


def test_everything_up_to_the_first_user_message_is_the_task() -> None:
    system, example = SystemMessage("x" * 4000), exchange("a")
    reclaimed = reclaim(system, *example, user("task"), *exchange("b", output=SHORT))
    assert reclaimed.messages == (system, *example, user("task"))
    assert reclaimed.plan.drop == (1, 2)


def test_without_a_user_message_the_first_message_is_the_task() -> None:
    system = SystemMessage("x")
    assert reclaim(system, *exchange("a", output=SHORT * 2), available=100).messages == (system,)


def test_messages_that_stay_are_the_same_objects() -> None:
    prompt = (user("task"), *exchange("a", output="x" * 8000), *exchange("b", output="x" * 8000))
    reclaimed = reclaim(*prompt, available=4500)
    assert reclaimed.plan.truncate == (2,)
    for index, (before, after) in enumerate(zip(prompt, reclaimed.messages, strict=True)):
        assert (before is after) == (index != 2)


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        (TextOutput("x" * 9000), TextOutput),
        (ErrorTextOutput("x" * 9000), ErrorTextOutput),
        (ErrorJsonOutput(["x" * 9000]), ErrorTextOutput),
    ],
)
def test_a_preview_shortens_the_payload_alone(output: ToolOutput, kind: type) -> None:
    notes = {"vendor": {"cache": True}}
    parts = [ToolResultPart("a", "read", output, notes), ToolResultPart("b", "write", TextOutput("done"))]
    prompt = (user("task"), asked("a", "b"), ToolMessage(parts, notes))
    message = reclaim(*prompt, available=2000).messages[2]
    assert isinstance(message, ToolMessage)
    first, second = message.content
    assert isinstance(first, ToolResultPart)
    assert (first.tool_call_id, first.tool_name, first.provider_options) == ("a", "read", notes)
    assert isinstance(first.output, kind)
    assert second is parts[1]
    assert message.provider_options == notes


def test_a_preview_says_which_files_there_were() -> None:
    output = ContentOutput((OutputText("a chart"), OutputImageData(bytes(5000), "image/png")))
    (shown,) = outputs_of(reclaim(user("task"), *exchange("a", output=output)))
    assert shown == ContentOutput((OutputText("a chart"), OutputText("[image/png of 5,000 bytes left out]")))


def test_batches_go_whole_oldest_first() -> None:
    parallel = exchange("a", "b", output=SHORT)
    one_by_one: list[Message] = [asked("c", "d"), answered("c", output=SHORT), answered("d", output=SHORT)]
    reclaimed = reclaim(user("task"), *parallel, *one_by_one, *exchange("e", output=SHORT), available=2000)
    assert ids_of(reclaimed.messages) == ["e"]
    assert reclaimed.messages == (user("task"), *exchange("e", output=SHORT))


def test_what_users_and_models_said_in_between_stays() -> None:
    said: list[Message] = [AssistantMessage([TextPart("found it")]), user("go on")]
    reclaimed = reclaim(user("task"), *exchange("a", output=SHORT), *said, *exchange("b", output=SHORT))
    assert reclaimed.messages == (user("task"), *said, *exchange("b", output=SHORT))


def test_no_note_is_put_where_messages_went() -> None:
    assert reclaim(user("task"), *exchange("a", output=SHORT), available=600).messages == (user("task"),)


# --------------------------------------------------------------------------------------------------------- pairing


def server_side(id: str, *, answered: bool) -> list[ToolCallPart | ToolResultPart]:
    call = ToolCallPart(id, "search", {}, provider_executed=True)
    return [call, *[ToolResultPart(id, "search", TextOutput("found"))] * answered]


def unpaired() -> dict[str, list[Message]]:
    approval, newer = ToolApprovalResponsePart("approval-1", True), UnknownPart("tool-question", {})
    results = answered("a", output=SHORT).content
    return {
        "a call without result": [asked("a", "b"), answered("a", output=SHORT)],
        "a result without call": [asked("a"), answered("a", "b", output=SHORT)],
        "a result twice": [asked("a"), answered("a", output=SHORT), answered("a", output=SHORT)],
        "a call twice": [asked("a", "a"), answered("a", "a", output=SHORT)],
        "another id": [asked("a"), answered("b", output=SHORT)],
        "answered later": [asked("a", "b"), answered("a", output=SHORT), user("wait"), answered("b", output=SHORT)],
        "an approval of something": [asked("a"), ToolMessage([*results, approval])],
        "a newer kind of part": [asked("a"), ToolMessage([*results, newer])],
        "a newer kind of question": [AssistantMessage([*asked("a").content, newer]), ToolMessage(results)],
        "a server's call under way": [
            AssistantMessage([*asked("a").content, *server_side("s", answered=False)]),
            ToolMessage(results),
        ],
    }


@pytest.mark.parametrize("name", unpaired())
def test_a_batch_that_is_not_closed_by_its_ids_stays(name: str) -> None:
    batch = unpaired()[name]
    reclaimed = reclaim(user("task"), *batch, *exchange("z", output=SHORT), available=600, tail=2)
    assert reclaimed.messages == (user("task"), *batch, *exchange("z", output=SHORT))


@pytest.mark.parametrize("name", unpaired())
def test_what_cannot_go_can_still_become_a_preview(name: str) -> None:
    batch = [
        message.replace(content=[_longer(part) for part in message.content])
        if isinstance(message, ToolMessage)
        else message
        for message in unpaired()[name]
    ]
    reclaimed = reclaim(user("task"), *batch, available=600)
    assert len(reclaimed.messages) == len(batch) + 1
    assert reclaimed.plan.truncate
    assert not reclaimed.plan.drop


def _longer(part: object) -> object:
    return part.replace(output=TextOutput("x" * 9000)) if isinstance(part, ToolResultPart) else part


def test_a_server_tool_that_is_answered_in_its_message_goes_with_it() -> None:
    asks = AssistantMessage([*server_side("s", answered=True), *asked("a").content])
    assert reclaim(user("task"), asks, answered("a", output=SHORT), available=600).messages == (user("task"),)


def test_a_message_of_server_tools_alone_is_no_batch() -> None:
    asks = AssistantMessage(server_side("s", answered=True))
    stray = answered("a", output=SHORT)
    assert reclaim(user("task"), asks, stray, available=300).messages == (user("task"), asks, stray)


def test_ids_may_repeat_from_batch_to_batch() -> None:
    reclaimed = reclaim(user("task"), *exchange("call_0", output=SHORT), *exchange("call_0", output=SHORT))
    assert ids_of(reclaimed.messages) == ["call_0"]


# -------------------------------------------------------------------------------------------------------- the tail


def test_a_batch_that_straddles_the_protected_tail_is_left_whole() -> None:
    prompt = (user("task"), asked("a", "b"), answered("a", output=SHORT), answered("b", output=SHORT))
    assert reclaim(*prompt, tail=1).messages == prompt
    assert reclaim(*prompt, tail=0).messages == (user("task"),)


def test_the_tail_is_previewed_only_where_the_policy_says_so() -> None:
    prompt = (user("task"), *exchange("a", output="x" * 40_000))
    assert reclaim(*prompt, tail=4).messages == prompt
    relieved = reclaim(*prompt, tail=4, tail_relief=True)
    assert relieved.plan.relief == (2,)
    (output,) = outputs_of(relieved)
    assert isinstance(output, TextOutput)
    assert len(output.value) <= 2048


def test_a_great_image_is_not_counted_as_text() -> None:
    prompt = (UserMessage([FilePart("image/png", bytes(1_000_000))]), *exchange("a"))
    assert reclaim(*prompt, available=3000).messages == prompt
