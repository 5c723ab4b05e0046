"""Marks of the prompt cache: where they go, how many there are, and what is said of those that are left out."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import ContentOutput, OutputText, TextPart, UnknownPart
from neurolink_mw.providers.anthropic.request import build_request

from .builders import (
    FINDER,
    HAIKU,
    LOOK,
    MARK,
    answered,
    called,
    instructed,
    messages_of,
    options,
    own,
    quiet,
    request,
    result,
    said,
    thought,
    told,
    warned,
)

CACHED = own(cacheControl=MARK)


def part(text: str = "p") -> TextPart:
    return TextPart(text, CACHED)


def marks(native: Any) -> int:
    """How many blocks of a request are marked."""
    if isinstance(native, dict):
        return ("cache_control" in native) + sum(marks(item) for item in native.values())
    return sum(marks(item) for item in native) if isinstance(native, list) else 0


def test_a_mark_keeps_its_time_to_live() -> None:
    hour = {"type": "ephemeral", "ttl": "1h"}
    (message,) = messages_of(said(TextPart("a", own(cacheControl=hour))))
    assert message["content"][0]["cache_control"] == hour


def test_a_messages_mark_goes_on_its_last_block_that_can_be_cached() -> None:
    answer = answered("a", thought(signature="S"), called(), cacheControl=MARK)
    content = messages_of(said("q"), answer, told(result()))[1]["content"]
    assert ["cache_control" in block for block in content] == [False, False, True]


def test_a_mark_on_part_and_message_is_one() -> None:
    assert marks(messages_of(said(part(), cacheControl=MARK))) == 1


def test_a_message_of_thinking_alone_cannot_be_marked() -> None:
    answer = answered(thought(signature="S"), cacheControl=MARK)
    assert "cache_control on non-cacheable context" in request(options(said("q"), answer, said("go")))[1]


def test_results_and_their_pieces_and_outputs_are_marked() -> None:
    on_output = ContentOutput((OutputText("a", CACHED),), CACHED)
    calls = answered(called("a"), called("b"), cacheControl=MARK)
    messages = messages_of(said("q"), calls, told(result("a", on_output), result("b", cacheControl=MARK)))
    first, second = messages[2]["content"]
    assert first["cache_control"] == first["content"][0]["cache_control"] == second["cache_control"] == MARK
    assert messages[1]["content"][1]["cache_control"] == MARK


def test_system_blocks_are_marked_one_by_one() -> None:
    native = quiet(options(instructed("a", cacheControl=MARK), instructed("b"), said("q")))
    assert ["cache_control" in block for block in native["system"]] == [True, False]


def test_a_mark_within_a_native_block_is_counted() -> None:
    block = {"type": "text", "text": "n", "cache_control": MARK}
    native = UnknownPart("custom", {"providerOptions": own(block=block)})
    _, features = request(options(said(native, part(), part(), part(), part())))
    assert features == ["cacheControl breakpoint limit"]


def test_a_tool_that_anthropic_defines_is_marked_in_its_args() -> None:
    native = quiet(options(tools=[FINDER.replace(args={"cacheControl": MARK}), LOOK.replace(provider_options=CACHED)]))
    assert [tool["cache_control"] for tool in native["tools"]] == [MARK, MARK]


def test_beyond_four_one_warning_names_the_first_and_the_limit() -> None:
    native, warnings = warned(options(said(*(part(str(n)) for n in range(7)))))
    assert marks(native) == 4
    (warning,) = warnings
    assert warning.details is not None
    assert warning.details.startswith("prompt[0].content[4] and 2 more")
    assert "at most 4" in warning.details


def test_automatic_caching_is_one_of_the_four() -> None:
    call = options(said(part(), part(), part(), part()), provider_options=CACHED)
    native, features = request(call)
    assert native["cache_control"] == MARK
    assert marks(native["messages"]) == 3
    assert features == ["cacheControl breakpoint limit"]


def test_a_mark_that_is_no_object_is_refused_by_its_place() -> None:
    with pytest.raises(InvalidRequestError, match=r"prompt\[0\]\.content\[0\]: cacheControl is an object"):
        build_request(HAIKU, options(said(TextPart("a", own(cacheControl=True)))))
