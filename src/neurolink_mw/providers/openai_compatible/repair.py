"""The one repair of a refused request: leave out the optional parameter that the server says it does not know. Pure.

Servers of this format support different subsets of its parameters, and so do models of one server. The error names
the parameter, so the call can be made good once without guessing.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ...protocol import JSON, CallWarning, camel_case
from .errors import error_details, parsed
from .request import SETTINGS

# Without these it would be another call. A tool list that is dropped changes what the model may do.
PROTECTED: Final = frozenset({"model", "messages", "tools", "stream"})

_FEATURES: Final = {
    **{parameter: camel_case(name) for name, parameter in SETTINGS.items()},
    "max_completion_tokens": "maxOutputTokens",
    "stop": "stopSequences",
    "response_format": "responseFormat",
    "tool_choice": "toolChoice",
    "reasoning_effort": "reasoning",
    "verbosity": "textVerbosity",
    "stream_options": "includeUsage",
}
_CODES = frozenset(
    {
        *("unsupported_parameter", "unknown_parameter", "unsupported_value", "unrecognized_parameter"),
        *("extra_forbidden", "value_error.extra"),
    }
)
# What a message says of a parameter that is not supported, and the name in it.
# Its length is bounded, and it begins where a word begins: a message may quote a long word of the request.
_NAME = r"[`'\"]?(?<![\w.])(?P<name>[a-z][\w.]{0,127})(?![\w.])[`'\"]?"
_SAYINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:unsupported|unknown|unrecognized|unexpected) (?:parameter|value|field|property)s?:? {_NAME}",
        rf"unrecognized request arguments? supplied: {_NAME}",
        rf"unexpected keyword argument {_NAME}",
        rf"(?:parameter|property|field|argument|option) {_NAME} is (?:unsupported|not (?:supported|permitted|allowed))",
        r"[`'\"](?P<name>[a-z][\w.]{0,127})[`'\"] is (?:unsupported|not (?:supported|permitted|allowed))",
        rf"(?:extra (?:inputs|fields) (?:are )?not permitted)[,:]? (?:field:? )?{_NAME}",
        rf"{_NAME}:? extra (?:inputs|fields) (?:are )?not permitted",
        rf"extra_forbidden.{{0,40}}?'body', {_NAME}",  # pydantic's list of faults, printed into a message
        rf"^{_NAME} is not supported",
        rf"does(?: not|n't) support (?:the )?(?:parameter )?{_NAME}",
    )
)
_REFUSAL = re.compile(
    r"(?i)unsupported|unrecognized|unknown|unexpected|not (?:supported|permitted|allowed)|does(?: not|n't) support"
)


_READ_LENGTH = 4096


class Repair(NamedTuple):
    """A request to send instead, and the warning that says what became of the option."""

    native: dict[str, JSON]
    warning: CallWarning


def repair(status: int, body: bytes, native: dict[str, JSON]) -> Repair | None:
    """What to send instead of a request that was answered with `status` and `body`; None where nothing can be done."""
    if status not in (400, 422):
        return None
    parameter = _refused_parameter(body, native)
    if parameter is None:
        return None
    repaired = {name: item for name, item in native.items() if name != parameter}
    feature = _FEATURES.get(parameter, parameter)
    if parameter == "max_tokens" and "max_completion_tokens" not in native:
        # Reasoning models of OpenAI take the same limit under its newer name only.
        repaired["max_completion_tokens"] = native["max_tokens"]
        details = "the server refused max_tokens, so it was sent as max_completion_tokens"
        return Repair(repaired, CallWarning("compatibility", feature, details))
    details = f"the server refused {parameter}, so the request was sent again without it"
    return Repair(repaired, CallWarning("unsupported", feature, details))


def _refused_parameter(body: bytes, native: dict[str, JSON]) -> str | None:
    details = error_details(parsed(body))
    message = (details.message or "")[:_READ_LENGTH]
    named: list[str] = []
    refusal = {details.code, details.type} & _CODES or _REFUSAL.search(message)
    if details.param and refusal:
        named.append(details.param)
    else:
        for saying in _SAYINGS:
            named.extend(match["name"] for match in saying.finditer(message))
    for name in named:
        parameter = name.partition(".")[0].partition("[")[0]
        if parameter in native:
            return None if parameter in PROTECTED else parameter
    return None
