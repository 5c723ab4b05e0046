"""The boto3 client that a model calls through: its own, or a given one.

boto3 is imported here, in functions that run when a model is made: importing this module costs nothing.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from ...errors import ConfigError

CONNECT_TIMEOUT_S: Final = 10
READ_TIMEOUT_S: Final = 600  # a reasoning model may think for minutes before it says anything

_ARN = re.compile(r"arn:aws[\w-]*:(?:bedrock|sagemaker):(?P<region>[a-z0-9-]+):")
# Attempts that botocore makes where a client's settings do not say: its `legacy` mode, and the others.
_ATTEMPTS: Final = {"legacy": 5}
_ATTEMPTS_ELSE: Final = 3


class BedrockClient(Protocol):
    """The part of a boto3 `bedrock-runtime` client that is used."""

    def converse(self, **kwargs: Any) -> Any: ...

    def converse_stream(self, **kwargs: Any) -> Any: ...


@dataclass(frozen=True)
class Client:
    """What a model calls through. calls: the client whose calls can be aborted. region: where it calls, if it says.
    host: whom it calls, to be shown. sends_headers: it can add headers to a call. close: ends idle connections, those
    of a given client's other uses not among them."""

    calls: BedrockClient
    region: str | None
    host: str | None
    sends_headers: bool
    close: Callable[[], None]


def own_client(model_id: str, region: str | None, profile: str | None, endpoint_url: str | None, size: int) -> Client:
    """A client of our own: no retries, which are the pipeline's, and a connection for each of `size` threads.

    Raises ConfigError where it cannot be made: no region, an unknown profile, an endpoint that is no address.
    """
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    if endpoint_url is not None:
        _check_address(endpoint_url)
    settings = Config(
        # The mode is named too: that of the environment may be `adaptive`, which holds calls back.
        retries={"total_max_attempts": 1, "mode": "standard"},
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        max_pool_connections=size,
        tcp_keepalive=True,
    )
    try:
        session = boto3.Session(profile_name=profile, region_name=region_of_arn(model_id) or region)
        if not session.region_name:
            raise ConfigError(
                "no AWS region: give BedrockModel(..., region='us-east-1'), set AWS_DEFAULT_REGION, or name a profile "
                "that has one"
            )
        client = session.client("bedrock-runtime", endpoint_url=endpoint_url, config=settings)
    except (BotoCoreError, ValueError) as error:
        # botocore quotes an endpoint whole, with what stands before its host.
        said = type(error).__name__ if endpoint_url is not None and endpoint_url in str(error) else str(error)
        raise ConfigError(f"no Bedrock client can be made: {said}") from None
    return _abortable(client, size, client.close)


def given_client(client: BedrockClient, region: str | None, size: int) -> Client:
    """A client that belongs to the caller, who set its timeouts and will close it. Its connections, handlers and
    settings are left as they are. Warns where it tries calls again by itself."""
    if not callable(getattr(client, "converse", None)) or not callable(getattr(client, "converse_stream", None)):
        raise ConfigError(
            f"client is a boto3 client, as of boto3.client('bedrock-runtime'), not {type(client).__name__}"
        )
    attempts = _attempts(client)
    if attempts > 1:
        warnings.warn(
            f"the given client makes up to {attempts} attempts at each call, which multiply with those of the "
            "pipeline's retry: make it with config=Config(retries={'total_max_attempts': 1})",
            stacklevel=3,
        )
    abortable = _abortable(client, size, lambda: None)
    if region is not None and abortable.region is not None and region != abortable.region:
        raise ConfigError(f"region is {region!r}, and the given client calls {abortable.region!r}: leave region out")
    return Client(abortable.calls, region or abortable.region, abortable.host, abortable.sends_headers, abortable.close)


def region_of_arn(model_id: str) -> str | None:
    """The region that an ARN names: what it stands for can be called nowhere else."""
    found = _ARN.match(model_id)
    return found["region"] if found else None


def _abortable(client: BedrockClient, size: int, close: Callable[[], None]) -> Client:
    from . import connections

    meta = getattr(client, "meta", None)
    if not connections.is_botocore_client(client):
        warnings.warn(
            f"the given client is a {type(client).__name__} and none of botocore's: a call that is cancelled before "
            "its answer has begun returns at once, and its thread stays taken until the answer begins or the client "
            "gives up",
            stacklevel=4,
        )
        return Client(client, _text(getattr(meta, "region_name", None)), None, False, close)
    region, host = _text(getattr(meta, "region_name", None)), _host(getattr(meta, "endpoint_url", None))
    connections.hook_calls(client)
    noting = connections.noting_client(client, size)
    if noting is not None:
        return Client(noting, region, host, True, noting.close)
    connections.hook_answers(client)
    warnings.warn(
        "this release of botocore hides its connections: a call that is cancelled before its answer has begun returns "
        "at once, and its thread and connection stay taken until the answer begins",
        stacklevel=4,
    )
    return Client(client, region, host, True, close)


def _attempts(client: BedrockClient) -> int:
    config = getattr(getattr(client, "meta", None), "config", None)
    retries = getattr(config, "retries", None)
    if not isinstance(retries, Mapping):
        return 1
    total = retries.get("total_max_attempts")
    return total if isinstance(total, int) else _ATTEMPTS.get(str(retries.get("mode")), _ATTEMPTS_ELSE)


def _check_address(endpoint_url: str) -> None:
    try:
        url = urlsplit(endpoint_url)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError("endpoint_url is an http or https address, as in https://vpce-1.bedrock-runtime.example.com")


def _host(endpoint_url: object) -> str | None:
    url = urlsplit(endpoint_url) if isinstance(endpoint_url, str) else None
    if url is None or not url.hostname:
        return None
    return url.hostname if url.port is None else f"{url.hostname}:{url.port}"


def _text(item: object) -> str | None:
    return item if isinstance(item, str) else None
