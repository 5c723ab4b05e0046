"""The guard of Converse conversations: alternation, pairing, and what shares a message with results."""

from __future__ import annotations

import copy

import pytest

from neurolink_mw.loop_guard import ConverseGuard, ConverseMessage, LoopGuardPolicy, Reclaimed

from .builders import CACHE_POINT, IMAGE, Dict, answer, assert_sound, blocks, says, steps, use

SHORT = {"text": "x" * 2000}  # not longer than a preview, so that only dropping helps
TASK = says("user", "task")


def reclaim(*conversation: Dict, available: int = 600, tail: int = 0) -> Reclaimed[ConverseMessage]:
    return ConverseGuard(LoopGuardPolicy(available, protected_tail_count=tail)).reclaim(list(conversation))


def short(*ids: str) -> list[Dict]:
    return [message for id in ids for message in (says("assistant", use(id)), says("user", answer(id, SHORT)))]


def tokens(*blocks: Dict | str) -> int:
    """The estimate of a user message of some blocks, without what any message takes."""
    return reclaim(says("user", *blocks), available=10**6).plan.total_tokens - 4


def previewed(*content: Dict, status: str = "success") -> Dict:
    """The tool result that becomes of one with this content."""
    results = says("user", answer("a", *content, status=status))
    _, _, message = reclaim(TASK, says("assistant", use("a")), results, available=1000).messages
    (shown,) = blocks(message, "toolResult")
    return shown


def test_a_conversation_that_fits_is_the_same_list() -> None:
    conversation = [TASK, *steps("a", "b")]
    assert ConverseGuard(LoopGuardPolicy(3000)).reclaim(conversation).messages is conversation


def test_what_was_given_is_never_changed() -> None:
    conversation = [TASK, *steps("a", "b"), says("assistant", use("c")), says("user", answer("c"), "go on")]
    before = copy.deepcopy(conversation)
    assert reclaim(*conversation, available=1000).plan.fire
    assert conversation == before


def test_messages_that_stay_are_the_same_objects() -> None:
    conversation = [TASK, *short("a", "b")]
    kept = reclaim(*conversation, available=1000).messages
    assert all(after is before for after, before in zip(kept, [TASK, *conversation[3:]], strict=True))


def test_exchanges_go_whole_and_roles_alternate() -> None:
    parallel = [says("assistant", "looking", use("a"), use("b")), says("user", answer("a", SHORT), answer("b", SHORT))]
    kept = reclaim(TASK, *parallel, *short("c"), says("assistant", "done"), available=1000).messages
    assert_sound(kept)
    assert [use["toolUseId"] for message in kept for use in blocks(message, "toolUse")] == ["c"]


# ---------------------------------------------------------------------------------- what shares a message with results


def test_user_text_beside_results_that_went_is_added_to_the_user_message_before() -> None:
    late = [says("assistant", use("a")), says("user", answer("a", SHORT), "go on")]
    kept = reclaim(TASK, *late, says("assistant", "ok")).messages
    assert kept == [says("user", "task", "go on"), says("assistant", "ok")]
    assert says("user", "task") == TASK


def test_it_is_added_behind_the_results_of_the_message_before() -> None:
    unpaired = [says("assistant", use("a")), says("user", answer("other", {"text": "stays"}))]
    late = [says("assistant", use("b")), says("user", answer("b", SHORT), "go on", IMAGE)]
    kept = reclaim(TASK, *unpaired, *late, says("assistant", "ok")).messages
    merged = says("user", answer("other", {"text": "stays"}), "go on", IMAGE)
    assert kept == [TASK, unpaired[0], merged, says("assistant", "ok")]


def test_text_of_several_exchanges_comes_together_in_order() -> None:
    conversation = [TASK]
    for id in "ab":
        conversation += [says("assistant", use(id)), says("user", answer(id, SHORT), f"after {id}")]
    assert reclaim(*conversation, available=100).messages == [says("user", "task", "after a", "after b")]


def test_results_and_text_of_one_message_are_two_entries() -> None:
    conversation = [TASK, says("assistant", use("a")), says("user", answer("a", SHORT), "y" * 4000)]
    plan = reclaim(*conversation, tail=1).plan
    assert plan.drop == (1, 2)
    assert plan.projected_tokens == 5 + 1000


def test_a_cache_point_goes_with_the_results_and_stays_with_text() -> None:
    asks = says("assistant", use("a"))
    assert reclaim(TASK, asks, says("user", answer("a", SHORT), CACHE_POINT)).messages == [TASK]
    with_text = says("user", answer("a", SHORT), CACHE_POINT, "go on", CACHE_POINT)
    assert reclaim(TASK, asks, with_text).messages == [says("user", "task", CACHE_POINT, "go on", CACHE_POINT)]


def test_the_blocks_of_the_task_stay() -> None:
    task = says("user", "x" * 40_000, {"image": {"format": "png", "source": {"bytes": b"1"}}}, CACHE_POINT)
    assert reclaim(task, *short("a")).messages == [task]


# ------------------------------------------------------------------------------------------------------- pairing

UNPAIRED = {
    "a use without result": [says("assistant", use("a"), use("b")), says("user", answer("a", SHORT))],
    "a result without use": [says("assistant", use("a")), says("user", answer("a", SHORT), answer("b", SHORT))],
    "another id": [says("assistant", use("a")), says("user", answer("b", SHORT))],
    "a result twice": [says("assistant", use("a")), says("user", answer("a", SHORT), answer("a", SHORT))],
}


@pytest.mark.parametrize("name", UNPAIRED)
def test_an_exchange_that_is_not_closed_by_its_ids_stays(name: str) -> None:
    conversation = [TASK, *UNPAIRED[name], *short("z")]
    assert reclaim(*conversation, tail=2).messages == conversation


def test_a_server_tool_that_is_answered_in_its_message_goes_with_it() -> None:
    server = [use("s"), answer("s", {"text": "found"})]
    assert reclaim(TASK, says("assistant", *server, use("a")), says("user", answer("a", SHORT))).messages == [TASK]
    alone = [TASK, says("assistant", *server, SHORT)]
    assert reclaim(*alone).messages == alone


# ------------------------------------------------------------------------------------------------------- previews


def test_a_preview_keeps_id_and_status() -> None:
    shown = previewed({"text": "x" * 9000}, status="error")
    assert (shown["toolUseId"], shown["status"]) == ("a", "error")
    (block,) = shown["content"]
    assert len(block["text"]) <= 2048


def test_json_that_is_too_long_is_shown_as_text_and_short_json_stays() -> None:
    rows, short = {"json": {"rows": ["x" * 9000]}}, {"json": {"ok": True}}
    first, second = previewed(rows, short)["content"]
    assert first["text"].startswith('{"rows":["xxx')
    assert second is short


def test_images_and_documents_are_described() -> None:
    image = {"image": {"format": "png", "source": {"bytes": bytes(5000)}}}
    document = {"document": {"format": "pdf", "name": "a", "source": {"s3Location": {"uri": "s3://a/b"}}}}
    assert previewed(image, document)["content"] == [
        {"text": "[png image of 5,000 bytes left out]"},
        {"text": "[pdf document left out]"},
    ]


def test_many_texts_become_one() -> None:
    (block,) = previewed(*[{"text": f"line {number} " + "x" * 40} for number in range(100)])["content"]
    assert block["text"].startswith("line 0 ")


def test_other_blocks_of_a_previewed_message_stay() -> None:
    message = says("user", answer("a", {"text": "x" * 9000}), CACHE_POINT, "go on")
    kept = reclaim(TASK, says("assistant", use("a")), message, available=1000).messages[2]
    assert kept["content"][1:] == message["content"][1:]  # type: ignore[index]


# ------------------------------------------------------------------------------------------------------ estimates


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"text": "x" * 400}, 100),
        ({"image": {"format": "png", "source": {"bytes": bytes(10**6)}}}, 1024),
        ({"document": {"format": "pdf", "name": "a", "source": {"bytes": bytes(10**6)}}}, 4096),
        ({"document": {"format": "csv", "name": "a", "source": {"bytes": b"x" * 40_000}}}, 10_000),
        ({"document": {"format": "txt", "name": "a", "source": {"text": "x" * 400}}}, 100),
        ({"document": {"name": "a", "source": {"content": [{"text": "x" * 400}]}}}, 100),
        ({"document": {"name": "a"}}, 4096),
        ({"video": {"format": "mp4", "source": {"bytes": bytes(10**6)}}}, 4096),
        ({"audio": {"format": "wav", "source": {"bytes": bytes(10**6)}}}, 4096),
        ({"toolUse": {"toolUseId": "a", "name": "read", "input": {"path": "x" * 389}}}, 101),
        ({"toolResult": {"toolUseId": "a", "content": [{"text": "x" * 400}, {"json": {"a": "x" * 392}}]}}, 200),
        ({"reasoningContent": {"reasoningText": {"text": "x" * 400, "signature": "y" * 4000}}}, 100),
        ({"reasoningContent": {"redactedContent": bytes(10**6)}}, 0),
        ({"guardContent": {"text": {"text": "x" * 400, "qualifiers": ["query"]}}}, 100),
        ({"citationsContent": {"content": [{"text": "x" * 400}], "citations": [{}]}}, 100),
        ({"searchResult": {"source": "a", "title": "b", "content": [{"text": "x" * 400}]}}, 100),
        (CACHE_POINT, 0),
        ({"newKind": {"data": bytes(10**6)}}, 5),
        ({"newKind": {"data": "A" * 10**6}}, 4096),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else None,
)
def test_a_block_costs_what_the_model_reads(block: Dict, expected: int) -> None:
    assert tokens(block) == expected


def test_a_block_that_is_no_mapping_is_skipped() -> None:
    assert tokens(*[]) == 0
    assert ConverseGuard(LoopGuardPolicy(10)).reclaim([{"role": "user", "content": "text"}]).plan.total_tokens == 4
