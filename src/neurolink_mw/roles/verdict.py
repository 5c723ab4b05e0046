"""What a policy says: allow, deny, replace, or flag."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..events import Action
from ..protocol import CallOptions
from ..protocol.context import REFUSAL

VerdictAction: TypeAlias = Literal["allow", "deny", "replace", "flag"]


ACTIONS: dict[VerdictAction, Action] = {"deny": "denied", "replace": "replaced", "flag": "flagged"}
"""What reports call it, once it is done."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Made by `allow`, `deny`, `replace` and `flag`. code: why, for programs; message: the policy's words for the user;
    replacement: what to put in the place of what was judged."""

    action: VerdictAction = "allow"
    code: str = ""
    message: str = field(default="", repr=False)
    replacement: str | CallOptions | None = field(default=None, repr=False)


_ALLOW = Verdict()


def allow() -> Verdict:
    """Nothing to say."""
    return _ALLOW


def deny(code: str, message: str = REFUSAL) -> Verdict:
    """Refuse. `code` goes into outcomes and events, `message` to the user. ValueError if one of them is no text."""
    if not isinstance(message, str):
        raise ValueError("deny(code, message): the message is a text for the user")
    return Verdict("deny", _code(code), message)


def replace(replacement: str | CallOptions, code: str = "replaced") -> Verdict:
    """Put a text in the place of what was judged: the joined text, the joined reasoning, or the input of one tool
    call. A request policy may give whole call options instead."""
    return Verdict("replace", _code(code), "", replacement)


def flag(code: str) -> Verdict:
    """Let it pass, and say so in the outcome and as an event."""
    return Verdict("flag", _code(code))


def _code(code: object) -> str:
    if not isinstance(code, str) or not code:
        raise ValueError("the code of a verdict is a text that says why, for programs")
    return code
