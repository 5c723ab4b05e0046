"""Header fields of a call: whether they can be sent, and which of them are secret. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
SECRET_NAME: Final = re.compile(r"(?i)auth|key|token|secret|cookie|password|signature|^sig$|^code$")
# They say where the body ends, which is the client's to know.
_FRAMING = frozenset({"connection", "content-length", "transfer-encoding"})


def header_fault(headers: Mapping[str, object]) -> str | None:
    """What is wrong with the first header that cannot be sent, without quoting its value."""
    for name, text in headers.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            return f"headers: {name!r} is not the name of a header"
        if name.lower() in _FRAMING:
            return f"headers[{name!r}] belongs to the client: it says where the body ends"
        if text is None:
            continue
        if not isinstance(text, str):
            return f"headers[{name!r}] is a string, not {type(text).__name__}"
        if not VALUE.fullmatch(text):
            return f"headers[{name!r}] holds a character that a header cannot"
    return None


def secrets_of(headers: Mapping[str, object]) -> list[str]:
    """The values that no message may quote: of headers that are named like a secret, also without their scheme."""
    said = [str(text) for name, text in headers.items() if text and SECRET_NAME.search(name)]
    return [*said, *(text.partition(" ")[2] for text in said)]


def in_lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    """Header fields by their names in lower case."""
    return {name.lower(): text for name, text in headers.items()}
