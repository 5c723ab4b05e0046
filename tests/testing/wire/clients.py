"""A real boto3 client of a wire server, and the TLS such a server may speak."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from neurolink_mw.testing import wire

CERTIFICATE = Path(__file__).with_name("localhost.pem")

HELLO = [{"role": "user", "content": [{"text": "hi"}]}]


@contextmanager
def bedrock_client(server: wire.ScriptedServer, *, read_timeout: float = 20) -> Iterator[Any]:
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        endpoint_url=server.base_url,
        verify=str(CERTIFICATE),
        config=Config(retries={"total_max_attempts": 1}, read_timeout=read_timeout),
    )
    try:
        yield client
    finally:
        client.close()


def converse(server: wire.ScriptedServer, **body: Any) -> Any:
    """The whole answer to one request."""
    with bedrock_client(server) as client:
        return client.converse(**{"modelId": "acme.model-v1:0", "messages": HELLO, **body})


def stream(server: wire.ScriptedServer, **body: Any) -> list[Mapping[str, Any]]:
    """All events of the answer to one request."""
    events: list[Mapping[str, Any]] = []
    collect(server, events, **body)
    return events


def collect(server: wire.ScriptedServer, into: list[Mapping[str, Any]], **body: Any) -> None:
    """Append the events of one answer as they come, so that those before an error are kept."""
    with bedrock_client(server) as client:
        answer = client.converse_stream(**{"modelId": "acme.model-v1:0", "messages": HELLO, **body})
        try:
            for event in answer["stream"]:
                into.append(event)
        finally:
            answer["stream"].close()


def deltas(events: list[Mapping[str, Any]]) -> list[Any]:
    return [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]


def texts(events: list[Mapping[str, Any]]) -> list[str]:
    return [delta["text"] for delta in deltas(events) if "text" in delta]


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context
