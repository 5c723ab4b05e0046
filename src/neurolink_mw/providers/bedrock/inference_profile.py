"""The ids to try for a model that Bedrock serves through inference profiles only. Pure.

Newer models cannot be called by their own id: Bedrock answers "Invocation of model ID ... with on-demand throughput
isn't supported. Retry your request with the ID or ARN of an inference profile that contains this model." The id of a
system-defined profile is the model's with a geography before it, or `global`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

GLOBAL: Final = "global"

# Geographies by the beginning of a region's name; a region elsewhere has none.
_GEOGRAPHIES: Final = {"us": "us", "ca": "us", "eu": "eu", "il": "eu", "me": "eu", "af": "eu", "ap": "apac"}
_REGIONS: Final = {
    "ap-northeast-1": "jp",
    "ap-northeast-3": "jp",
    "ap-southeast-2": "au",
    "ap-southeast-4": "au",
    "ap-southeast-6": "au",
}
_GOVERNMENT: Final = "us-gov"
# `anthropic.claude-...`: a vendor and a model. An ARN has another form, and no vendor's name is as short as a
# geography's.
_PLAIN_ID = re.compile(r"(?P<vendor>[a-z0-9][a-z0-9-]{2,})\.[\w.:-]+")
_PREFIXES: Final = frozenset({"apac", GLOBAL, _GOVERNMENT})


def profile_ids(model_id: str, region: str | None) -> tuple[str, ...]:
    """The inference profiles that may hold the model, the nearest first; none where the id is no plain model id.

    region: where the client calls. Where that is unknown, or in no geography, `global` alone.
    """
    found = _PLAIN_ID.fullmatch(model_id)
    if found is None or found["vendor"] in _PREFIXES:
        return ()
    prefixes = filter(None, (geography(region or ""), GLOBAL))
    return tuple(f"{prefix}.{model_id}" for prefix in prefixes)


def geography(region: str) -> str | None:
    """The prefix of a region's own profiles, as `eu` for `eu-central-1`."""
    if region.startswith(f"{_GOVERNMENT}-"):
        return _GOVERNMENT
    return _REGIONS.get(region) or _GEOGRAPHIES.get(region.partition("-")[0])


def wants_profile(response: Mapping[str, object]) -> bool:
    """Whether an error, as botocore parsed it, asks for an inference profile in place of the model's id."""
    message = _refusal(response)
    return "inference profile" in message and "on-demand throughput" in message


def has_no_profile(response: Mapping[str, object]) -> bool:
    """Whether an error says that there is no such id: of one that was made up here, that the profile does not exist."""
    return "model identifier is invalid" in _refusal(response)


def _refusal(response: Mapping[str, object]) -> str:
    error = response.get("Error")
    if not isinstance(error, Mapping) or "validation" not in str(error.get("Code")).lower():
        return ""
    return str(error.get("Message")).lower()
