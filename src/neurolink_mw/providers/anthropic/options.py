"""What a call says to Anthropic alone: `provider_options["anthropic"]`, on the call, its messages and parts. Pure.

On the call, members of a request are given under their own names, in camelCase: `cacheControl` (the API then marks the
last block by itself), `container`, `contextManagement`, `mcpServers`, `metadata`, `outputConfig`, `serviceTier`,
`speed`, `thinking` and the others of MEMBERS. These are ours besides:

- `anthropicBeta` (or `betas`): a list of names, for the header
- `effort` and `taskBudget`: members of `output_config`
- `disableParallelToolUse`: at most one call an answer
- `structuredOutputMode`: "outputFormat", "jsonTool" or "auto", where the table of models is wrong about native output
- `toolStreaming`: false for inputs that are streamed only when they are valid JSON
- `sendReasoning`: false for a prompt without earlier reasoning
- `lateSystemMessages`: "system" (in place, as a message of that role) or "user" (in place, as the user's text)

On messages and parts: `cacheControl`, and on single kinds of part what `messages`, `media` and `tool_results` say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ...protocol import CallOptions, CallWarning, JSONObject
from ..common.json_values import plain
from .errors import ErrorReader
from .naming import snake_case
from .native_values import snaked

KEY: Final = "anthropic"
"""Provider options and metadata of this provider are filed under this name."""

BETA_HEADER: Final = "anthropic-beta"

_OBJECTS: Final = frozenset(
    {
        *("billingPolicy", "cacheControl", "compaction", "contextManagement", "diagnostics", "metadata"),
        *("outputConfig", "thread"),
    }
)
_TEXTS: Final = frozenset({"inferenceGeo", "serviceTier", "speed"})
_LISTS: Final = frozenset({"mcpServers"})
_EITHER: Final = frozenset({"container", "fallbackCreditToken", "fallbacks"})
MEMBERS: Final = _OBJECTS | _TEXTS | _LISTS | _EITHER
"""Members of a request that provider options reach as they are; `thinking` is read apart."""

BUILT: Final = frozenset(
    {
        *("maxTokens", "messages", "model", "stopSequences", "stream", "system", "temperature", "toolChoice", "tools"),
        *("topK", "topP"),
    }
)
"""Members that are made from the call itself."""

_HEADERS: Final = {"userProfileId": "anthropic-user-profile-id", "workspaceId": "anthropic-workspace-id"}
_CHOICES: Final[Mapping[str, tuple[str, str, str] | tuple[str, str]]] = {
    "structuredOutputMode": ("auto", "outputFormat", "jsonTool"),
    "lateSystemMessages": ("system", "user"),
}
_SWITCHES: Final = frozenset({"disableParallelToolUse", "sendReasoning", "toolStreaming"})
_BETAS: Final = ("anthropicBeta", "betas")
_BETA = re.compile(r"[\w.-]+")
_READ: Final = MEMBERS | _CHOICES.keys() | _SWITCHES | {*_BETAS, "effort", "taskBudget", "thinking"}


class ProviderOptions(NamedTuple):
    """The call's own options, checked.

    members: of the request, native. output_config, thinking: what was given for them, native. betas: of the options and
    of the header, in lower case. parallel: False for at most one call, None where nothing was said.
    """

    members: dict[str, object]
    output_config: dict[str, object]
    thinking: dict[str, object] | None
    betas: frozenset[str]
    parallel: bool | None
    structured_output: str
    tool_streaming: bool
    send_reasoning: bool
    late_system: str


def read_provider_options(options: CallOptions, errors: ErrorReader, warnings: list[CallWarning]) -> ProviderOptions:
    """Read and check the call's provider options; entries that are None are not set.

    Unknown entries are left out and named in a warning, since the API refuses a request that holds them. Raises
    InvalidRequestError that names the entry.
    """
    own = (options.provider_options or {}).get(KEY) or {}
    if not isinstance(own, Mapping):
        raise errors.refused(f"provider_options[{KEY!r}] is an object, not {type(own).__name__}")
    given = {name: item for name, item in own.items() if item is not None}
    members: dict[str, object] = {}
    for name in sorted(MEMBERS & given.keys()):
        members[snake_case(name)] = _member(name, snaked(plain(given[name], _place(name), errors)), errors)
    output_config = members.pop("output_config", {})
    assert isinstance(output_config, dict)
    if (effort := given.get("effort", output_config.get("effort"))) is not None:
        output_config["effort"] = _text("effort", effort, errors)
    if (budget := given.get("taskBudget")) is not None:
        output_config["task_budget"] = _object(
            "taskBudget", snaked(plain(budget, _place("taskBudget"), errors)), errors
        )
    thinking = None
    if (config := given.get("thinking")) is not None:
        thinking = _object("thinking", snaked(plain(config, _place("thinking"), errors)), errors)
    chosen = {name: _choice(name, given.get(name), errors) for name in _CHOICES}
    switched = {name: _switch(name, given.get(name), errors) for name in _SWITCHES}
    parallel = switched["disableParallelToolUse"]
    _warn_of_unknown(given, warnings)
    return ProviderOptions(
        members,
        output_config,
        thinking,
        frozenset(_betas(options, given, errors)),
        None if parallel is None else not parallel,
        chosen["structuredOutputMode"],
        switched["toolStreaming"] is not False,
        switched["sendReasoning"] is not False,
        chosen["lateSystemMessages"],
    )


def with_option(options: CallOptions, name: str, said: str) -> CallOptions:
    """The same call with one of its provider options."""
    given = options.provider_options or {}
    own = given.get(KEY)
    mine = {**own, name: said} if isinstance(own, Mapping) else {name: said}
    return options.replace(provider_options={**given, KEY: mine})


def part_options(provider_options: Mapping[str, object] | None) -> JSONObject:
    """What a message, part or tool says to Anthropic; empty where it says nothing."""
    own = provider_options.get(KEY) if provider_options else None
    return own if isinstance(own, Mapping) else {}


def _betas(options: CallOptions, given: Mapping[str, object], errors: ErrorReader) -> set[str]:
    names: list[str] = []
    for name, item in (options.headers or {}).items():
        if name.lower() == BETA_HEADER and item is not None:
            names.extend(item.split(","))
    for name in _BETAS:
        listed = given.get(name)
        if listed is None:
            continue
        if not isinstance(listed, list | tuple) or not all(isinstance(one, str) for one in listed):
            raise errors.refused(f"{_place(name)} is a list of strings")
        if not all(_BETA.fullmatch(one) for one in listed if isinstance(one, str)):
            raise errors.refused(
                f"{_place(name)}: the name of a beta is letters, digits, dots, hyphens and underscores"
            )
        names.extend(str(one) for one in listed)
    return {name.strip().lower() for name in names if name.strip()}


def _warn_of_unknown(given: Mapping[str, object], warnings: list[CallWarning]) -> None:
    for name in sorted(given.keys() - _READ):
        details = f"{_place(name)} is no member of a request and was left out"
        if name in BUILT:
            details = f"{_place(name)} was left out: it is made from the call's own options"
        elif name in _HEADERS:
            details = f"{_place(name)} was left out: it is a header, so say {_HEADERS[name]!r} in headers"
        warnings.append(CallWarning("unsupported", name, details))


def _member(name: str, item: object, errors: ErrorReader) -> object:
    if name in _OBJECTS:
        return _object(name, item, errors)
    if name in _TEXTS:
        return _text(name, item, errors)
    if name in _LISTS and not isinstance(item, list):
        raise errors.refused(f"{_place(name)} is a list, not {type(item).__name__}")
    if name == "container":
        return _container(item, errors)
    if name == "fallbacks" and item != "default" and not isinstance(item, list):
        raise errors.refused(f"{_place(name)} is 'default' or a list of objects, not {type(item).__name__}")
    if name == "fallbackCreditToken" and not isinstance(item, str | dict):
        raise errors.refused(f"{_place(name)} is a string or an object, not {type(item).__name__}")
    return item


def _container(item: object, errors: ErrorReader) -> object:
    """An id, or an object with an id and skills; a skill of one's own may be given as a map of provider to id."""
    if isinstance(item, str):
        return item
    container = _object("container", item, errors)
    skills = container.get("skills")
    if skills is None:
        return container.get("id", container)
    if not isinstance(skills, list) or not all(isinstance(skill, dict) for skill in skills):
        raise errors.refused(f"{_place('container')}: skills is a list of objects")
    return {**container, "skills": [_skill(skill) for skill in skills]}


def _skill(skill: dict[str, object]) -> dict[str, object]:
    reference = skill.get("provider_reference")
    native = {name: item for name, item in skill.items() if name != "provider_reference"}
    if isinstance(reference, dict) and isinstance(reference.get(KEY), str):
        native["skill_id"] = reference[KEY]
    native.setdefault("version", "latest")  # required by SkillParams
    return native


def _object(name: str, item: object, errors: ErrorReader) -> dict[str, object]:
    if not isinstance(item, dict):
        raise errors.refused(f"{_place(name)} is an object, not {type(item).__name__}")
    return item


def _text(name: str, item: object, errors: ErrorReader) -> str:
    if not isinstance(item, str):
        raise errors.refused(f"{_place(name)} is a string, not {type(item).__name__}")
    return item


def _choice(name: str, item: object, errors: ErrorReader) -> str:
    if item is None:
        return _CHOICES[name][0]
    if item not in _CHOICES[name]:
        raise errors.refused(f"{_place(name)} is {' or '.join(map(repr, _CHOICES[name]))}")
    return str(item)


def _switch(name: str, item: object, errors: ErrorReader) -> bool | None:
    if item is not None and not isinstance(item, bool):
        raise errors.refused(f"{_place(name)} is true or false, not {type(item).__name__}")
    return item


def _place(name: str) -> str:
    return f"provider_options[{KEY!r}][{name!r}]"
