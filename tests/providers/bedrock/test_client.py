"""Where a model's client comes from, what it is set to, and what is refused when a model is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from neurolink_mw.errors import ConfigError
from neurolink_mw.providers.bedrock import BedrockModel, Threads

from .wire_builders import KEYS, MODEL

ARN = "arn:aws-us-gov:bedrock:us-gov-west-1:123456789012:application-inference-profile/abc"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine's own AWS settings, and a profile."""
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE", "AWS_RETRY_MODE", "AWS_MAX_ATTEMPTS"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "config"
    file.write_text("[profile sydney]\nregion = ap-southeast-2\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def settings(model: BedrockModel) -> Any:
    client: Any = model._client.calls
    return client.meta.config


def test_the_region_of_an_arn_wins_then_the_given_one_then_botos_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    for arn in (ARN, ARN.replace("bedrock:", "sagemaker:").replace("application-inference-profile", "endpoint")):
        assert "region='us-gov-west-1'" in repr(BedrockModel(arn, region="us-east-1"))
    assert "region='eu-west-1'" in repr(BedrockModel(MODEL, region="eu-west-1", profile="sydney"))
    assert "region='ap-southeast-2'" in repr(BedrockModel(MODEL, profile="sydney"))
    monkeypatch.setenv("AWS_DEFAULT_REGION", "ca-central-1")
    assert "region='ca-central-1'" in repr(BedrockModel(MODEL))


def test_without_a_region_a_model_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"no AWS region: give BedrockModel\(\.\.\., region='us-east-1'\)"):
        BedrockModel(MODEL)


def test_its_own_client_tries_once_and_has_patience_and_a_connection_for_each_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_RETRY_MODE", "adaptive")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "7")
    config = settings(BedrockModel(MODEL, region="us-east-1", threads=7))
    assert config.retries == {"total_max_attempts": 1, "mode": "standard"}
    assert (config.connect_timeout, config.read_timeout, config.max_pool_connections) == (10, 600, 7)
    assert config.tcp_keepalive is True


def test_a_given_client_that_tries_again_by_itself_is_warned_about() -> None:
    trying = boto3.client("bedrock-runtime", region_name="eu-west-1", **KEYS)
    with pytest.warns(UserWarning, match="up to 3 attempts at each call") as warned:
        BedrockModel(MODEL, client=trying)
    assert warned[0].filename == __file__
    once = Config(retries={"total_max_attempts": 1})
    given = boto3.client("bedrock-runtime", region_name="eu-west-1", config=once, **KEYS)
    assert "region='eu-west-1'" in repr(BedrockModel(MODEL, client=given))


def test_any_object_with_the_two_methods_can_be_a_client() -> None:
    class Double:
        def converse(self, **kwargs: Any) -> Any: ...

        def converse_stream(self, **kwargs: Any) -> Any: ...

    with pytest.warns(UserWarning, match="a Double and none of botocore's"):
        model = BedrockModel(MODEL, client=Double(), region="us-west-2")
    assert "region='us-west-2'" in repr(model)


def test_an_endpoint_that_botocore_refuses_is_not_quoted() -> None:
    with pytest.raises(ConfigError) as refused:
        BedrockModel(MODEL, region="us-east-1", endpoint_url="http://user:sekret@bad_host!/")
    assert "sekret" not in str(refused.value)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="model_id is empty"):
        BedrockModel("")
    with pytest.raises(ConfigError, match=r"client is a boto3 client, .* not str"):
        BedrockModel(MODEL, client="bedrock")  # type: ignore[arg-type]
    given = boto3.client("bedrock-runtime", region_name="x-1", config=Config(retries={"total_max_attempts": 1}), **KEYS)
    with pytest.raises(ConfigError, match="the given one has its own"):
        BedrockModel(MODEL, client=given, profile="sydney")
    with pytest.raises(ConfigError, match="region is 'y-1', and the given client calls 'x-1'"):
        BedrockModel(MODEL, client=given, region="y-1")
    with pytest.raises(ConfigError, match="profile"):
        BedrockModel(MODEL, profile="nowhere")
    with pytest.raises(ConfigError, match="threads is how many"):
        BedrockModel(MODEL, region="us-east-1", threads=0)


@pytest.mark.parametrize("address", ["bedrock", "ftp://a", "http://", "http://[", "http://user:secret@a:b"])
def test_an_endpoint_that_is_no_address_is_refused_without_being_shown(address: str) -> None:
    with pytest.raises(ConfigError, match="endpoint_url is an http or https address") as caught:
        BedrockModel(MODEL, region="us-east-1", endpoint_url=address)
    assert "secret" not in str(caught.value)


def test_the_repr_shows_who_is_asked_and_nothing_secret() -> None:
    one = BedrockModel(MODEL, region="us-east-1", endpoint_url="https://me:password@bedrock.test:8443/x")
    assert repr(one) == f"BedrockModel(model_id='{MODEL}', region='us-east-1', host='bedrock.test:8443')"


def test_models_share_the_process_threads_unless_they_are_given_some() -> None:
    own = Threads(3)
    assert BedrockModel(MODEL, region="us-east-1", threads=own)._threads is own
    models = [BedrockModel(MODEL, region="us-east-1") for _ in range(2)]
    assert models[0]._threads is models[1]._threads


def test_boto3_is_imported_when_a_model_is_made_and_not_before() -> None:
    code = (
        "import sys, neurolink_mw.providers.bedrock as room\n"
        "assert not {'boto3', 'botocore', 'urllib3'} & sys.modules.keys()\n"
        "room.BedrockModel('amazon.nova-lite-v1:0', region='us-east-1')\n"
        "assert 'boto3' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
