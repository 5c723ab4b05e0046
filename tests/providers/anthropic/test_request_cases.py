"""The recorded cases of requests: what is sent, and what is warned about.

`cases.json` holds what the AI SDK's V3 adapter does. Where we do otherwise on purpose, `OVERRULED` says what and why.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import CallOptions, Url, from_json
from neurolink_mw.providers.anthropic.request import BETAS, build_request
from neurolink_mw.structured import FINAL_RESULT_INSTRUCTION

from .sdk_types import check_request

Json = dict[str, Any]

CASES: list[Json] = json.loads((Path(__file__).parent / "cases.json").read_text("utf-8"))
REQUESTS = [pytest.param(case, id=case["id"]) for case in CASES if case["area"].startswith("request/")]

# A beta is asked for only where the SDK's stable types lack what needs it.
STABLE = "the SDK's stable types have it, and gateways refuse names of betas that they do not know"
# What is sent in the header instead of the recorded betas; changes of the body (None: taken out).
OVERRULED: dict[str, tuple[list[str], Json, str]] = {
    "AN-002": ([], {}, STABLE),
    "AN-006": ([], {}, STABLE),
    "AN-011": ([], {}, STABLE),
    "AN-013": ([], {}, STABLE),
    "AN-022": ([], {}, STABLE),
    "AN-023": ([], {}, STABLE),
    "AN-025": ([], {}, STABLE),
    "AN-027": ([], {}, STABLE),
    "AN-029": ([], {}, STABLE),
    "AN-030": ([], {}, STABLE),
    "AN-031": ([], {}, STABLE),
    "AN-044": (
        [],
        {
            "tool_choice": None,
            "system": [{"type": "text", "text": FINAL_RESULT_INSTRUCTION.strip()}],
            "tools.1.name": "final_result",
        },
        "a forced tool would take the caller's tools away",
    ),
}


def _options(given: Json) -> CallOptions:
    data = {"prompt": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], **given.get("options", {})}
    return from_json(CallOptions, _plain(data))


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return Url(data["$url"]) if "$url" in data else {key: _plain(item) for key, item in data.items()}
    return [_plain(item) for item in data] if isinstance(data, list) else data


def _changed(body: Any, changes: Json) -> Any:
    body = json.loads(json.dumps(body))
    for path, item in changes.items():
        *outer, name = path.split(".")
        at = body
        for step in outer:
            at = at[int(step) if isinstance(at, list) else step]
        if item is None:
            del at[name]
        else:
            at[name] = item
    return body


def _without_prose(body: Json) -> Json:
    """The description of the tool of a JSON answer is left open by the cases."""
    for tool in body.get("tools", []):
        if tool["name"] in ("json", "final_result"):
            tool["description"] = "<any>"
    return body


@pytest.mark.parametrize("case", REQUESTS)
def test_a_call_is_sent_as_recorded(case: Json) -> None:
    given, expect = case["given"], case["expect"]
    betas, changes, _ = OVERRULED.get(case["id"], (expect.get("beta", []), {}, ""))
    stream = given["call"] == "stream"
    if "error" in expect:
        with pytest.raises(InvalidRequestError, match=r"prompt\[0\]\.content\[0\].*video/mp4"):
            build_request(given["model"], _options(given), stream=stream)
        return
    native, warnings = build_request(given["model"], _options(given), stream=stream)
    check_request(native)
    assert native.pop(BETAS, []) == betas
    assert _without_prose(native) == _without_prose(_changed(expect["body"], changes))
    recorded = [(warning["type"], str(warning.get("feature"))) for warning in expect["warnings"]]
    assert sorted((one.type, str(one.feature)) for one in warnings) == sorted(recorded)


def test_what_is_overruled_differs_from_what_is_recorded() -> None:
    recorded = {case["id"]: case["expect"].get("beta", []) for case in CASES}
    assert all(changes or betas != recorded[id] for id, (betas, changes, _) in OVERRULED.items())
