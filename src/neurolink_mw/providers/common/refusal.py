"""Which parameter a service says that it does not take. Pure.

Services refuse a parameter in words of their own, or in those of the validator that they use (pydantic, JSON Schema).
What is not named is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Its length is bounded, and it begins where a word begins: a message may quote a long word of the request.
_NAME = r"[`'\"\[]?(?<![\w.])(?P<name>[A-Za-z][\w.-]{0,127})(?![\w.-])[`'\"\]]?"
_KIND = r"(?:key|parameter|value|field|property)(?:s|\(s\))?"
_REFUSED = r"(?:unsupported|deprecated|not (?:supported|permitted|allowed))"
_SAYINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:extraneous|un(?:supported|known|expected|recognized)) {_KIND}:? {_NAME}",
        rf"unrecognized request arguments? supplied: {_NAME}",
        rf"unexpected keyword argument {_NAME}",
        rf"(?:parameter|property|field|argument|option) {_NAME} is {_REFUSED}",
        rf"[`'\"](?P<name>[A-Za-z][\w.-]{{0,127}})[`'\"] is {_REFUSED}",
        rf"(?:extra (?:inputs|fields) (?:are )?not permitted)[,:]? (?:field:? )?{_NAME}",
        rf"{_NAME}:? extra (?:inputs|fields) (?:are )?not permitted",
        rf"extra_forbidden.{{0,40}}?'body', {_NAME}",  # pydantic's list of faults, printed into a message
        rf"^{_NAME}(?::|:? (?:is|are)) {_REFUSED}(?! to\b)",  # not "is not allowed to be above 1"
        rf"doe(?:s not|sn['’]t) support (?:the )?(?:parameter |field )?{_NAME}",
        # Of two that exclude each other, the latter goes.
        rf"[`'\"]\w+[`'\"] and {_NAME} cannot both be",
    )
)
_READ_LENGTH = 4096


def refused_names(message: str) -> Iterator[str]:
    """The names that a message may mean, as it spells them: `temperature`, `thinking.type`. The likeliest first."""
    message = message[:_READ_LENGTH]
    for saying in _SAYINGS:
        for found in saying.finditer(message):
            yield found["name"].rstrip(".-")
