"""What a call says to Bedrock alone: `provider_options["bedrock"]`, on the call and on its messages and parts. Pure.

On the call, members of a Converse request are given under their own names. These are ours besides:

- `reasoningConfig`: `{"type": "enabled" | "adaptive" | "disabled", "budgetTokens": ..., "maxReasoningEffort": ...}`
- `anthropicBeta`: a list of names, for Claude
- `structuredOutput`: "native" or "tool", where the table of models is wrong about `outputConfig.textFormat`
- `lateSystemMessages`: "user" (a system message after the head goes in place as the user's text) or "system" (as a
  message of that role, which few models take)
- `bucketOwner`: the account that owns the buckets of `s3://` addresses

On messages and parts: `cachePoint`, and on single kinds of part what `messages` and `media` say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...protocol import CallOptions, CallWarning, JSONObject
from ..common.json_values import plain
from .errors import ErrorReader

KEY: Final = "bedrock"
"""Provider options and metadata of this provider are filed under this name."""

_OBJECTS: Final = frozenset(
    {
        *("inferenceConfig", "guardrailConfig", "additionalModelRequestFields", "promptVariables", "requestMetadata"),
        *("performanceConfig", "outputConfig"),
    }
)
MEMBERS: Final = _OBJECTS | {"additionalModelResponseFieldPaths", "projectIdentifier", "serviceTier"}
"""Members of a Converse request that provider options reach."""

BUILT: Final = frozenset({"modelId", "messages", "system", "toolConfig"})
"""Members that are made from the call itself."""

_CHOICES: Final[Mapping[str, tuple[str, str]]] = {
    "structuredOutput": ("native", "tool"),
    "lateSystemMessages": ("user", "system"),
}


class ProviderOptions(NamedTuple):
    """The call's own options, checked. `members`: of the request, as plain JSON."""

    members: dict[str, object]
    reasoning: dict[str, object] | None
    beta: list[str]
    structured_output: str | None
    late_system: str
    bucket_owner: str | None


def read_provider_options(options: CallOptions, errors: ErrorReader, warnings: list[CallWarning]) -> ProviderOptions:
    """Read and check the call's provider options; entries that are None are not set.

    Unknown entries are left out and named in a warning, since botocore refuses a request that holds them. Raises
    InvalidRequestError that names the entry.
    """
    given = _given(options, errors)
    members: dict[str, object] = {}
    for name in MEMBERS & given.keys():
        members[name] = _member(name, plain(given[name], _place(name), errors), errors)
    chosen = {name: _choice(name, given.get(name), errors) for name in _CHOICES}
    reasoning = given.get("reasoningConfig")
    if reasoning is not None and not isinstance(reasoning, Mapping):
        raise errors.refused(f"{_place('reasoningConfig')} is an object, not {type(reasoning).__name__}")
    beta = given.get("anthropicBeta")
    if beta is not None and not (isinstance(beta, list | tuple) and all(isinstance(one, str) for one in beta)):
        raise errors.refused(f"{_place('anthropicBeta')} is a list of strings")
    owner = given.get("bucketOwner")
    if owner is not None and not isinstance(owner, str):
        raise errors.refused(f"{_place('bucketOwner')} is a string of twelve digits, not {type(owner).__name__}")
    unknown = given.keys() - MEMBERS - _CHOICES.keys() - {"reasoningConfig", "anthropicBeta", "bucketOwner"}
    for name in sorted(unknown):
        details = f"{_place(name)} is no member of a Converse request and was left out"
        if name in BUILT:
            details = f"{_place(name)} was left out: it is made from the call's own options"
        warnings.append(CallWarning("unsupported", name, details))
    return ProviderOptions(
        members,
        None if reasoning is None else {str(key): item for key, item in reasoning.items() if item is not None},
        [str(one) for one in beta or ()],
        chosen["structuredOutput"],
        chosen["lateSystemMessages"] or "user",
        owner,
    )


def part_options(provider_options: Mapping[str, object] | None) -> JSONObject:
    """What a message, part or tool says to Bedrock; empty where it says nothing."""
    own = provider_options.get(KEY) if provider_options else None
    return own if isinstance(own, Mapping) else {}


def _given(options: CallOptions, errors: ErrorReader) -> dict[str, object]:
    own = (options.provider_options or {}).get(KEY) or {}
    if not isinstance(own, Mapping):
        raise errors.refused(f"provider_options[{KEY!r}] is an object, not {type(own).__name__}")
    return {name: item for name, item in own.items() if item is not None}


def _member(name: str, item: object, errors: ErrorReader) -> object:
    if name == "serviceTier":
        return {"type": item} if isinstance(item, str) else _object(name, item, errors)
    if name in _OBJECTS:
        return _object(name, item, errors)
    if name == "projectIdentifier" and not isinstance(item, str):
        raise errors.refused(f"{_place(name)} is a string, not {type(item).__name__}")
    if name == "additionalModelResponseFieldPaths" and not (
        isinstance(item, list) and all(isinstance(pointer, str) for pointer in item)
    ):
        raise errors.refused(f"{_place(name)} is a list of JSON pointers, which are strings")
    return item


def _object(name: str, item: object, errors: ErrorReader) -> dict[str, object]:
    if not isinstance(item, dict):
        raise errors.refused(f"{_place(name)} is an object, not {type(item).__name__}")
    return item


def _choice(name: str, item: object, errors: ErrorReader) -> str | None:
    if item is None:
        return None
    if item not in _CHOICES[name]:
        raise errors.refused(f"{_place(name)} is {' or '.join(map(repr, _CHOICES[name]))}")
    return str(item)


def _place(name: str) -> str:
    return f"provider_options[{KEY!r}][{name!r}]"
