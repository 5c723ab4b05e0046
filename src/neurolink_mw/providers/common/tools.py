"""What every service asks of tools and of the choice among them, on the way into a native request. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...protocol import JSONObject, ToolChoice
from .error_maker import ErrorMaker
from .json_values import plain

_CHOICES: Final = ("auto", "none", "required")


def object_schema(schema: JSONObject, place: str, errors: ErrorMaker) -> dict[str, object]:
    """The schema of a tool's input, which is an object and has to say so. Raises InvalidRequestError for no schema."""
    native = plain(schema, place, errors)
    if not isinstance(native, Mapping):
        raise errors.refused(f"{place}: is an object that describes an object, not {type(schema).__name__}")
    return {**native} if "type" in native else {"type": "object", **native}


def checked_choice(choice: ToolChoice | None, takes: Callable[[str], bool], errors: ErrorMaker) -> ToolChoice | None:
    """The choice, where it is one of V3's. takes: whether a name is that of a tool of the call.

    Raises InvalidRequestError, also for a choice that names none of the tools.
    """
    if choice is None or choice.type in _CHOICES:
        return choice
    if choice.type != "tool" or not choice.tool_name:
        allowed = ", ".join(_CHOICES)
        raise errors.refused(f"tool_choice: expected one of {allowed}, or tool with a tool_name; not {choice.type!r}")
    if not takes(choice.tool_name):
        raise errors.refused(f"tool_choice: {choice.tool_name!r} is none of the tools of the call")
    return choice
