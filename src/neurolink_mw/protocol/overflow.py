"""The figures in a provider's words about a prompt that is too long. No field of any API holds them."""

from __future__ import annotations

import re

_READ = 2000
_NUMBER = r"(\d{1,3}(?:,\d{3})+|\d+)"

# Each finds the prompt's tokens and the limit, in the order that its second member says.
_FORMS: tuple[tuple[re.Pattern[str], bool], ...] = tuple(
    (re.compile(form.replace("N", _NUMBER), re.IGNORECASE | re.DOTALL), prompt_first)
    for form, prompt_first in (
        # OpenAI, vLLM: the limit, then what the messages are, without the answer that was asked for
        (r"context length is N tokens.*?\(N (?:tokens )?(?:in|from) the (?:input )?(?:messages|prompt)", False),
        (r"context length is N tokens.*?resulted in N tokens", False),
        (r"context length is N tokens.*?requested N tokens", False),
        # Anthropic: "prompt is too long: 215000 tokens > 200000 maximum", "...: 190000 + 21000 > 204000"
        (r"N tokens > N", True),
        (r"N \+ \d[\d,]* > N", True),
        # llama.cpp, and others who put it in these words
        (r"N tokens\)? exceeds? .*?N", True),
    )
)


def overflow_figures(message: str) -> tuple[int | None, int | None]:
    """(tokens of the prompt, tokens that the model takes), each None where the message does not say."""
    for form, prompt_first in _FORMS:
        if found := form.search(message[:_READ]):
            one, other = (int(number.replace(",", "")) for number in found.groups())
            return (one, other) if prompt_first else (other, one)
    if found := re.search(rf"context length is {_NUMBER}", message[:_READ], re.IGNORECASE):
        return None, int(found.group(1).replace(",", ""))
    return None, None
