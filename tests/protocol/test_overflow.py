"""How long a prompt was, and how long it may be, in the words of those who refuse it."""

from __future__ import annotations

import pytest

from neurolink_mw.protocol.overflow import overflow_figures


@pytest.mark.parametrize(
    ("message", "figures"),
    [
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130123 tokens.",
            (130123, 128000),
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the "
            "messages, 1000 in the completion). Please reduce the length of the messages or completion.",
            (4000, 4096),
        ),
        ("This model's maximum context length is 4,096 tokens. However, you requested 5,000 tokens.", (5000, 4096)),
        ("prompt is too long: 215000 tokens > 200000 maximum", (215000, 200000)),
        ("input length and `max_tokens` exceed context limit: 190000 + 21000 > 204000", (190000, 204000)),
        ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", (5000, 4096)),
        ("maximum context length is 8192", (None, 8192)),
        ("Input is too long for requested model.", (None, None)),
        ("", (None, None)),
    ],
)
def test_the_figures_are_read_where_they_are_told(message: str, figures: tuple[int | None, int | None]) -> None:
    assert overflow_figures(message) == figures


def test_a_very_long_message_is_read_in_part() -> None:
    assert overflow_figures("x" * 3000 + "prompt is too long: 2 tokens > 1 maximum") == (None, None)
