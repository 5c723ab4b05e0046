"""The one repair of a refused request: leave out the optional parameter that the model is said not to take. Pure.

Converse passes inference parameters on to models that differ in what they take, newer ones of a family often less than
older. The error names the parameter, so the call can be made good once without guessing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from ...protocol import CallWarning
from ..common.refusal import refused_names
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
_READ_LENGTH = 4096
_NESTED = 3

Path: TypeAlias = tuple[str, ...]
"""Where a parameter is in a request: a member, a name in it, and where that is an object a name in that."""


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
    message = str(error.get("Message"))[:_READ_LENGTH]
    sent = list(_parameters(native))
    if not sent:
        return None
    for said in refused_names(message):
        if (path := _meant(said, message, sent)) is not None:
            details = f"the model refused {path[-1]}, so the request was sent again without it"
            warning = CallWarning("unsupported", _FEATURES.get(path[-1], path[-1]), details)
            return Repair(_without(native, path), warning)
    return None


def _parameters(native: Mapping[str, object]) -> Iterator[Path]:
    """The places of all that may be left out, those inside of an object before the object."""
    for member in (_INFERENCE, _FIELDS):
        group = native.get(member)
        for name, item in group.items() if isinstance(group, Mapping) else ():
            if member == _INFERENCE and name not in SETTINGS.values():
                continue
            if isinstance(item, Mapping):
                yield from ((member, name, inner) for inner in item)
            yield member, name


def _meant(said: str, message: str, sent: list[Path]) -> Path | None:
    """The parameter that a message names. Of several of one name it is the one whose object is named, too."""
    *outer, name = said.split(".")
    fitting = [path for path in sent if _plain(path[-1]) == _plain(name)]
    if outer and not fitting:  # a field of an object that was sent, as in `thinking.type`
        return _meant(outer[0], message, sent)
    named = [path for path in fitting if len(path) == _NESTED and re.search(rf"\b{re.escape(path[1])}\b", message)]
    return next(iter(named or sorted(fitting, key=len)), None)


def _without(native: Mapping[str, object], path: Path) -> dict[str, object]:
    """A request without what is at `path`, and without objects that are empty then."""
    key, *further = path
    rest = {name: item for name, item in native.items() if name != key}
    inner = native[key]
    if not further or not isinstance(inner, Mapping):
        return rest
    kept = _without(inner, tuple(further))
    return {**rest, key: kept} if kept else rest


def _plain(name: str) -> str:
    """`topP` and `top_p` are one: models name parameters in their own spelling."""
    return name.replace("_", "").lower()
