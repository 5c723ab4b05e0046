"""When a member takes part: for which provider and model, with which options and metadata, or by a function."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from inspect import isawaitable, iscoroutinefunction

from ..errors import ConfigError
from ..protocol import JSON, CallOptions, Value, camel_case
from .wording import did_you_mean

_FIELDS = {f.name: f.name for f in dataclasses.fields(CallOptions) if f.name not in ("context", "metadata", "extra")}
_FIELDS |= {camel_case(name): name for name in _FIELDS}
_ASYNC = "when.custom is asked in the middle of a call and cannot be awaited: give a sync function of the options"


@dataclass(frozen=True)
class When:
    """All that is given must hold.

    provider, model: a glob such as `bedrock*`, or a list of which one must match; decided when the chain is built.
    options: call options by name and value, such as {"temperature": 0}. metadata: keys of the call's metadata.
    Expected values are compared by value, strings as globs, mappings key by key (a tool choice or response format
    too: {"tool_choice": {"type": "required"}}); a list means "one of these".
    custom: a sync function of the options, asked at each call. What it raises is raised to the caller: a condition
    that cannot be decided never silently leaves a member out.
    """

    provider: str | Sequence[str] | None = None
    model: str | Sequence[str] | None = None
    options: Mapping[str, JSON] = field(default_factory=dict, repr=False)  # what is expected may be a secret
    metadata: Mapping[str, JSON] = field(default_factory=dict, repr=False)
    custom: Callable[[CallOptions], bool] | None = None

    def __post_init__(self) -> None:
        for name in self.options:
            if name not in _FIELDS:
                allowed = sorted(set(_FIELDS.values()))
                raise ConfigError(f"when.options.{name}: there is no such call option{did_you_mean(name, allowed)}")
        if self.custom is not None and not callable(self.custom):
            raise ConfigError(f"when.custom is a function of the options, not {type(self.custom).__name__}")
        if iscoroutinefunction(self.custom) or iscoroutinefunction(getattr(self.custom, "__call__", None)):  # noqa: B004
            raise ConfigError(_ASYNC)

    def excludes(self, provider: str, model_id: str) -> str | None:
        """Why a member can never run around this model, or None."""
        for name, wanted, actual in (("provider", self.provider, provider), ("model", self.model, model_id)):
            if wanted is not None and not _matches_glob(wanted, actual):
                shown = wanted if isinstance(wanted, str) else ", ".join(wanted)
                return f"when.{name} is {shown}, and the {name} is {actual}"
        return None

    @property
    def per_call(self) -> bool:
        """Whether something is left to decide at each call."""
        return bool(self.options or self.metadata or self.custom)

    def matches(self, options: CallOptions) -> bool:
        """Whether the member takes part in this call."""
        for name, wanted in self.options.items():
            if not _matches(wanted, getattr(options, _FIELDS[name])):
                return False
        metadata = options.metadata or {}
        for key, wanted in self.metadata.items():
            if key not in metadata or not _matches(wanted, metadata[key]):
                return False
        if self.custom is None:
            return True
        decided: object = self.custom(options)
        if isawaitable(decided):  # it would count as true, whatever it says
            raise ConfigError(_ASYNC)
        return bool(decided)


def _matches_glob(wanted: str | Sequence[str], actual: str) -> bool:
    return any(fnmatchcase(actual, pattern) for pattern in ([wanted] if isinstance(wanted, str) else wanted))


def _matches(wanted: JSON, actual: object) -> bool:
    if isinstance(wanted, str):
        return isinstance(actual, str) and fnmatchcase(actual, wanted)
    if isinstance(wanted, Mapping):
        given = _by_name(actual)
        return given is not None and all(key in given and _matches(item, given[key]) for key, item in wanted.items())
    if isinstance(wanted, list | tuple):
        return any(_matches(item, actual) for item in wanted) or _equal(wanted, actual)
    return _equal(wanted, actual)


def _equal(wanted: object, actual: object) -> bool:
    if isinstance(wanted, list | tuple):
        return (
            isinstance(actual, list | tuple)
            and len(wanted) == len(actual)
            and all(_equal(one, other) for one, other in zip(wanted, actual, strict=True))
        )
    if isinstance(wanted, bool) or isinstance(actual, bool):
        return wanted is actual  # True is no 1 in JSON
    return wanted == actual


def _by_name(actual: object) -> Mapping[str, object] | None:
    """What a mapping can be compared with: a mapping, or a protocol value by its fields in either spelling."""
    if isinstance(actual, Mapping):
        return actual
    if not isinstance(actual, Value):
        return None
    names = ["type", *(f.name for f in dataclasses.fields(actual))]  # type: ignore[arg-type]  # made by @value
    fields = {name: item for name in names if (item := getattr(actual, name, None)) is not None}
    return fields | {camel_case(name): item for name, item in fields.items()}
