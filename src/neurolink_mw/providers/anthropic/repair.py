"""The one repair of a refused request: leave out the optional parameter, or the beta, that the API does not take. Pure.

Newer models take fewer sampling parameters, gateways and clouds fewer members than the API. The error names what it
refuses, as a path into the body or bare, so the call can be made good once without guessing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ...protocol import CallWarning, camel_case
from ..common.errors import parsed
from ..common.refusal import refused_names
from .errors import error_details
from .request import BETAS

# Without these it would be another call: what the model is asked, and what it may do.
PROTECTED: Final = frozenset({"max_tokens", "messages", "model", "stream", "system", "tools"})
_FEATURES: Final = {
    "effort": "reasoning",
    "thinking": "reasoning",
    "output_config": "outputConfig",
    "format": "responseFormat",
}
# Of a tool, what may be left out without letting it do more, or other things.
_OPTIONAL_IN_TOOLS: Final = frozenset({"cache_control", "eager_input_streaming", "input_examples", "strict"})
# Members whose entries may be left out one by one.
_OBJECTS: Final = frozenset({"output_config", "metadata", "context_management", "tool_choice"})
# Of a choice, what says which it is.
_OF_A_CHOICE: Final = frozenset({"type", "name"})


_SYSTEM_ROLE = re.compile(
    r"(?i)\brole\b.{0,20}\bsystem\b|\bsystem\b.{0,10}\brole\b|messages\.\d+\.role\b.{0,40}\buser\b.{0,20}\bassistant\b"
)
_FORMAT = re.compile(r"(?i)output_(?:config\.)?format|structured[ _-]outputs?|json_schema")
_READ_LENGTH = 4096


class Repair(NamedTuple):
    """A request to send instead, and the warning that says what became of the option."""

    native: dict[str, object]
    warning: CallWarning


def repair(status: int, body: bytes, native: Mapping[str, object], *, no_calls: bool = False) -> Repair | None:
    """What to send instead of a request that was answered with `status` and `body`; None where nothing can be done.

    no_calls: the caller wants no tool called, however `tool_choice` says so, which then stays.
    """
    if status not in (400, 422):
        return None
    message = error_details(parsed(body)).message or ""
    for said in refused_names(message):
        repaired = _without_beta(said, message, native) or _without(said, native, no_calls=no_calls)
        if repaired is not None:
            return repaired
    return None


def refuses_system_role(status: int, body: bytes, native: Mapping[str, object]) -> bool:
    """Whether an answer refuses a system message that stands among the others: models of before do, and at some places
    all do. What it says can go there as the user's text."""
    messages = native.get("messages")
    if status not in (400, 422) or not isinstance(messages, list):
        return False
    has_one = any(isinstance(message, Mapping) and message.get("role") == "system" for message in messages)
    return has_one and _SYSTEM_ROLE.search((error_details(parsed(body)).message or "")[:_READ_LENGTH]) is not None


def refuses_format(status: int, body: bytes, native: Mapping[str, object]) -> bool:
    """Whether an answer refuses native JSON output: the answer can come by a tool instead."""
    output = native.get("output_config")
    if status not in (400, 422) or not isinstance(output, Mapping) or "format" not in output:
        return False
    return _FORMAT.search((error_details(parsed(body)).message or "")[:_READ_LENGTH]) is not None


def _without_beta(said: str, message: str, native: Mapping[str, object]) -> Repair | None:
    betas = native.get(BETAS)
    if not isinstance(betas, list) or said not in betas or "beta" not in message.lower():
        return None
    rest = {name: item for name, item in native.items() if name != BETAS}
    refused = [beta for beta in betas if beta == said or f"`{beta}`" in message]  # one refusal may name several
    if kept := [beta for beta in betas if beta not in refused]:
        rest[BETAS] = kept
    return Repair(rest, _warning(", ".join(refused), "anthropicBeta"))


def _without(said: str, native: Mapping[str, object], *, no_calls: bool) -> Repair | None:
    """said: a name, or a path such as `tools.0.custom.strict` or `output_config.effort`."""
    member, *inner = said.split(".")
    if member == "tools":
        return _without_in_tools(inner[-1], native) if inner else None
    if member not in native and not inner:
        # A bare name may be that of an entry.
        return _without_entry(member, native) or _without_in_tools(member, native)
    if member not in native or member in PROTECTED or member == BETAS:
        return None
    if inner and member in _OBJECTS:
        for name in inner:
            if (repaired := _without_entry(name, native, member)) is not None:
                return repaired
        if member != "tool_choice":
            return None
    if member == "tool_choice" and no_calls:
        return None  # without it the model may call what the caller does not want called
    rest = {name: item for name, item in native.items() if name != member}
    return Repair(rest, _warning(member, member))


def _without_entry(name: str, native: Mapping[str, object], member: str | None = None) -> Repair | None:
    for one in sorted(_OBJECTS) if member is None else (member,):
        entries = native.get(one)
        if one == "tool_choice" and name in _OF_A_CHOICE:
            continue
        if isinstance(entries, Mapping) and name in entries:
            kept = {key: item for key, item in entries.items() if key != name}
            rest = {key: item for key, item in native.items() if key != one}
            return Repair({**rest, one: kept} if kept else rest, _warning(name, name))
    return None


def _without_in_tools(name: str, native: Mapping[str, object]) -> Repair | None:
    """What one tool is refused with, all are."""
    tools = native.get("tools")
    if not isinstance(tools, list) or name not in _OPTIONAL_IN_TOOLS or not any(name in tool for tool in tools):
        return None
    kept = [{key: item for key, item in tool.items() if key != name} for tool in tools]
    return Repair({**native, "tools": kept}, _warning(name, name))


def _warning(name: str, feature: str) -> CallWarning:
    details = f"the API refused {name}, so the request was sent again without it"
    return CallWarning("unsupported", _FEATURES.get(feature, camel_case(feature)), details)
