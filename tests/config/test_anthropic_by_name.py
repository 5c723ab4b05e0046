"""A Claude model by its name, or in a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from neurolink_mw import CallOptions, Pipeline, generate
from neurolink_mw.errors import AuthenticationError, ConfigError
from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import anthropic

pytestmark = pytest.mark.anyio

MODEL_ID = "claude-sonnet-4-6"


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key, file or variable of the machine."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("ANTHROPIC_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


async def test_a_configuration_names_key_and_address() -> None:
    with wire.anthropic_server([anthropic.answer("Hello.")]) as server:
        model = {"provider": "anthropic", "model_id": MODEL_ID, "api_key": "sk-test", "base_url": server.base_url}
        async with Pipeline.from_config({"model": model}) as pipeline:
            assert (await pipeline.model.do_generate(CallOptions.from_text("Hi"))).text == "Hello."
        assert server.journal[0].json["model"] == MODEL_ID
        assert "sk-test" in str(server.journal[0].headers)


async def test_a_model_by_name_has_what_the_sdk_finds_and_timeouts_and_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = anthropic.error(529, "busy", retry_after=0)
    with wire.anthropic_server([busy, anthropic.answer("Hello.")]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
        assert (await generate(f"anthropic:{MODEL_ID}", "Hi")).text == "Hello."
        assert len(server.journal) == 2


async def test_without_a_key_it_says_what_to_do() -> None:
    with pytest.raises(AuthenticationError, match="ANTHROPIC_API_KEY"):
        await generate(f"anthropic:{MODEL_ID}", "Hi")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("api_kye", "x", "did you mean 'api_key'"), ("base_url", "", "base_url"), ("api_key", 5, "api_key")],
)
def test_an_option_that_cannot_be_is_refused_by_name(option: str, value: object, said: str) -> None:
    model = {"provider": "anthropic", "model_id": MODEL_ID, option: value}
    with pytest.raises(ConfigError, match=said):
        _ = Pipeline.from_config({"model": model}).model
