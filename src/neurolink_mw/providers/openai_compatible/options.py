"""What a call says to this provider alone: `provider_options`, on the call and on its messages and parts.

Two keys are read: the provider's own name, whose unknown entries travel to the top level of the request, and the
generic `openaiCompatible`, of which only known entries count, since it may be meant for any server of this format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...protocol import JSON, CallOptions, JSONObject
from .errors import ErrorReader

GENERIC_KEY: Final = "openaiCompatible"
THOUGHT_SIGNATURE: Final = "thoughtSignature"

_TEXT_OPTIONS = {"user": "user", "reasoningEffort": "reasoning_effort", "textVerbosity": "verbosity"}
_KNOWN = frozenset({*_TEXT_OPTIONS, "strictJsonSchema", "extraBody", "extra_body"})


class ProviderOptions(NamedTuple):
    """The call's own options. `fields`: parameters of the request; `strict`: of a JSON schema; `extra_body`: last."""

    fields: dict[str, JSON]
    strict: bool
    extra_body: dict[str, JSON]


def read_provider_options(options: CallOptions, provider: str, errors: ErrorReader) -> ProviderOptions:
    """Read and check the call's provider options. Raises InvalidRequestError that names the entry.

    Entries that are None are not set. The own name wins over the generic key.
    """
    given = options.provider_options or {}
    generic, own = given.get(GENERIC_KEY) or {}, given.get(provider) or {}
    fields: dict[str, JSON] = {}
    strict, extra_body = True, dict[str, JSON]()
    if provider != GENERIC_KEY:
        fields.update((key, item) for key, item in own.items() if key not in _KNOWN and item is not None)
    for name, source in ((GENERIC_KEY, generic), (provider, own)):
        for key, parameter in _TEXT_OPTIONS.items():
            text = source.get(key)
            if text is not None:
                if not isinstance(text, str):
                    raise errors.refused(f"{_place(name, key)} is a string, not {type(text).__name__}")
                fields[parameter] = text
        wanted = source.get("strictJsonSchema")
        if wanted is not None:
            if not isinstance(wanted, bool):
                raise errors.refused(f"{_place(name, 'strictJsonSchema')} is true or false")
            strict = wanted
        for key in ("extraBody", "extra_body"):
            body = source.get(key)
            if body is not None:
                if not isinstance(body, Mapping):
                    raise errors.refused(f"{_place(name, key)} is an object, not {type(body).__name__}")
                extra_body.update(body)
    return ProviderOptions(fields, strict, extra_body)


def wire_extras(provider_options: JSONObject | None, provider: str) -> dict[str, JSON]:
    """Fields that a message or part adds to its native form, such as `cache_control`."""
    if not provider_options:
        return {}
    extras: dict[str, JSON] = {}
    for key in (GENERIC_KEY, provider):
        said = provider_options.get(key)
        if isinstance(said, Mapping):
            extras.update((name, item) for name, item in said.items() if name not in _OURS)
    return extras


def thought_signature(provider_options: JSONObject | None, provider: str) -> str | None:
    """The signature that Gemini's endpoint gave a tool call and wants back with it on the next turn."""
    for key in (provider, GENERIC_KEY, "google"):
        said = (provider_options or {}).get(key)
        signature = said.get(THOUGHT_SIGNATURE) if isinstance(said, Mapping) else None
        if isinstance(signature, str):
            return signature
    return None


# What answers of ours carry under the provider's name, which comes back here with the history and is not for the wire.
_OURS = frozenset({THOUGHT_SIGNATURE, "refusal", "startIndex", "endIndex", "audioId", "expiresAt", "transcript"})


def _place(name: str, key: str) -> str:
    return f"provider_options[{name!r}][{key!r}]"
