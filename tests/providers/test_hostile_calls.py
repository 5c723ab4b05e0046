"""Calls that no provider can carry are refused by their place, and nothing of them is quoted."""

from __future__ import annotations

import math
from typing import Any

import pytest

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import CallOptions, FunctionTool
from neurolink_mw.providers.anthropic.request import build_request as anthropic_request
from neurolink_mw.providers.bedrock.request import build_request as bedrock_request
from neurolink_mw.providers.openai_compatible.request import build_request as openai_request

HI = CallOptions.from_text("Hi")

NATIVE = pytest.mark.parametrize(
    ("build", "model_id", "key"),
    [(anthropic_request, "claude-haiku-4-5", "anthropic"), (bedrock_request, "amazon.nova-lite-v1:0", "bedrock")],
)
ALL = pytest.mark.parametrize(
    ("build", "model_id"),
    [(anthropic_request, "claude-haiku-4-5"), (bedrock_request, "amazon.nova-lite-v1:0"), (openai_request, "gpt-5")],
)


def nested(depth: int) -> dict[str, Any]:
    data: dict[str, Any] = {}
    inner = data
    for _ in range(depth):
        inner["properties"] = {}
        inner = inner["properties"]
    return data


@ALL
def test_what_is_no_message_is_not_quoted(build: Any, model_id: str) -> None:
    hostile: Any = ({"role": "user", "content": "my secret words"},)
    with pytest.raises(InvalidRequestError, match=r"prompt\[0\]") as refused:
        build(model_id, HI.replace(prompt=hostile))
    assert "secret" not in str(refused.value)


@NATIVE
@pytest.mark.parametrize("setting", ["temperature", "top_p"])
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_setting_that_is_no_finite_number_is_refused_by_its_name(
    build: Any, model_id: str, key: str, setting: str, number: float
) -> None:
    with pytest.raises(InvalidRequestError, match=setting):
        build(model_id, HI.replace(**{setting: number}))


@NATIVE
def test_a_schema_that_is_nested_without_end_is_refused_by_its_place(build: Any, model_id: str, key: str) -> None:
    tool = FunctionTool("look", {"type": "object", **nested(3000)})
    with pytest.raises(InvalidRequestError, match=r"tools\[0\]"):
        build(model_id, HI.replace(tools=[tool]))


@NATIVE
def test_provider_options_of_another_form_are_refused(build: Any, model_id: str, key: str) -> None:
    with pytest.raises(InvalidRequestError, match=key):
        build(model_id, HI.replace(provider_options={key: ["x"]}))


@NATIVE
@pytest.mark.parametrize("schema", [None, True, "secret"])
def test_a_tool_without_a_schema_that_is_an_object_is_refused(build: Any, model_id: str, key: str, schema: Any) -> None:
    with pytest.raises(InvalidRequestError, match=r"tools\[0\]") as refused:
        build(model_id, HI.replace(tools=[FunctionTool("look", schema)]))
    assert "secret" not in str(refused.value)
