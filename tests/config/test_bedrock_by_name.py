"""A Bedrock model by its name, or in a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from neurolink_mw import CallOptions, Pipeline, generate
from neurolink_mw.errors import ConfigError
from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import bedrock

pytestmark = pytest.mark.anyio

MODEL_ID = "anthropic.claude-sonnet-4-6"


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials that are none, and no file or variable of the machine."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


async def test_a_configuration_names_region_and_endpoint() -> None:
    with wire.bedrock_server([bedrock.answer("Hello.")]) as server:
        model = {
            "provider": "bedrock",
            "model_id": MODEL_ID,
            "region": "eu-central-1",
            "endpoint_url": server.base_url,
            "threads": 4,
        }
        async with Pipeline.from_config({"model": model}) as pipeline:
            assert (await pipeline.model.do_generate(CallOptions.from_text("Hi"))).text == "Hello."
        assert bedrock.asked(server.journal[0]) == (MODEL_ID, "converse")
        assert "/eu-central-1/bedrock/" in server.journal[0].headers["authorization"]


async def test_a_model_by_name_has_what_boto3_finds_and_timeouts_and_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = bedrock.error(503, "ServiceUnavailableException", "busy", retry_after=0)
    with wire.bedrock_server([busy, bedrock.answer("Hello.")]) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.base_url)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
        assert (await generate(f"bedrock:{MODEL_ID}", "Hi")).text == "Hello."
        assert len(server.journal) == 2


async def test_without_a_region_it_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="region"):
        await generate(f"bedrock:{MODEL_ID}", "Hi")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("regoin", "eu-west-1", "did you mean 'region'"), ("threads", 0, "threads"), ("profile", "", "profile")],
)
def test_an_option_that_cannot_be_is_refused_by_name(option: str, value: object, said: str) -> None:
    model = {"provider": "bedrock", "model_id": MODEL_ID, option: value}
    with pytest.raises(ConfigError, match=said):
        _ = Pipeline.from_config({"model": model}).model
