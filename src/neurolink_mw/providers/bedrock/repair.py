"""The one repair of a refused request: leave out the optional parameter that the model is said not to take. Pure.

Converse passes inference parameters on to models that differ in what they take, newer ones of a family often less than
older. The error names the parameter, so the call can be made good once without guessing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ...protocol import CallWarning
from .request import SETTINGS

_INFERENCE: Final = "inferenceConfig"
_FIELDS: Final = "additionalModelRequestFields"

_FEATURES: Final = {
    "maxTokens": "maxOutputTokens",
    "top_k": "topK",
    "topK": "topK",
    "thinking": "reasoning",
    "reasoningConfig": "reasoning",
    "reasoning_effort": "reasoning",
    "output_config": "reasoning",
}
# How a service or a model behind it says that it does not take a parameter, and the parameter's name in it.
_NAME = r"[`'\"\[]?(?P<name>[A-Za-z]\w*)[\w.]*[`'\"\]]?"
_SAYINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"doe(?:s not|sn['’]t) support (?:the )?(?:parameter |field )?{_NAME}(?: (?:field|parameter))?",
        rf"(?:extraneous|un(?:supported|known|expected|recognized)) (?:key|parameter|field|property):? {_NAME}",
        rf"{_NAME}:? extra (?:inputs|fields) (?:are )?not permitted",
        rf"{_NAME} (?:parameter |field )?(?:is|are) (?:not (?:supported|permitted|allowed)|unsupported|deprecated)",
        # Of two that exclude each other, the latter goes.
        rf"[`'\"]\w+[`'\"] and {_NAME} cannot both be",
    )
)


class Repair(NamedTuple):
    """A request to send instead, and the warning that says what became of the option."""

    native: dict[str, object]
    warning: CallWarning


def repair(response: Mapping[str, object], native: Mapping[str, object]) -> Repair | None:
    """What to send instead of a request whose error, as botocore parsed it, is `response`; None where nothing can be
    done. Only inference parameters and the model's own fields are left out: without anything else it would be another
    call."""
    error = response.get("Error")
    if not isinstance(error, Mapping) or "validation" not in str(error.get("Code")).lower():
        return None
    message = str(error.get("Message"))
    for said in (found["name"] for saying in _SAYINGS for found in saying.finditer(message)):
        for member, name in _parameters(native):
            if _plain(name) == _plain(said):
                details = f"the model refused {name}, so the request was sent again without it"
                return Repair(
                    _without(native, member, name), CallWarning("unsupported", _FEATURES.get(name, name), details)
                )
    return None


def _parameters(native: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for member in (_INFERENCE, _FIELDS):
        group = native.get(member)
        for name in group if isinstance(group, Mapping) else ():
            if member == _FIELDS or name in SETTINGS.values():
                yield member, name


def _without(native: Mapping[str, object], member: str, name: str) -> dict[str, object]:
    group = native[member]
    assert isinstance(group, Mapping)
    rest = {key: item for key, item in group.items() if key != name}
    repaired = {key: item for key, item in native.items() if key != member}
    return {**repaired, member: rest} if rest else repaired


def _plain(name: str) -> str:
    """`topP` and `top_p` are one: models name parameters in their own spelling."""
    return name.replace("_", "").lower()
