"""Where Messages are asked for: Anthropic's own address, Bedrock's InvokeModel, Vertex's rawPredict."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import unquote

from neurolink_mw.testing.wire import bedrock
from neurolink_mw.testing.wire.anthropic_members import Host
from neurolink_mw.testing.wire.journal import Exchange

REQUEST_ID: Final = "req_wire"
"""What every reply says in `request-id`, unless its `headers` say otherwise. Bedrock's replies have Bedrock's own."""


_BEDROCK: Final = re.compile(r"/model/(?P<model>[^/?]+)/invoke(?P<streamed>-with-response-stream)?")
_VERTEX: Final = re.compile(
    r"/v1/projects/[^/?]+/locations/[^/?]+/publishers/anthropic/models/(?P<model>[^/?]+):"
    r"(?P<streamed>streamRawPredict|rawPredict)"
)


class Asked(NamedTuple):
    """What a request asks for: a model, in one message or in events, of which address, with which betas."""

    model_id: str
    streamed: bool
    host: Host
    betas: tuple[str, ...]


def asked(request: Exchange) -> Asked:
    """What a request that is in the journal asks for.

    Raises:
        ValueError: its path is none of the three, or its body is not a JSON object.
    """
    found = place(request.path)
    if found is None:
        raise ValueError(
            f"{request.path} is no path of Messages: /v1/messages, Bedrock's /model/... or Vertex's /v1/..."
        )
    body = request.json
    if not isinstance(body, dict):
        raise ValueError("the body is not a JSON object")
    host, model, streamed = found
    named = request.headers.get("anthropic-beta", "").split(",")
    in_body = body.get("anthropic_beta")
    betas = [*named, *(in_body if isinstance(in_body, list) else ())]
    return Asked(
        unquote(model) if model is not None else str(body.get("model")),
        bool(body.get("stream")) if streamed is None else streamed,
        host,
        tuple(str(beta).strip() for beta in betas if str(beta).strip()),
    )


def place(path: str) -> tuple[Host, str | None, bool | None] | None:
    """The address that a path belongs to, with the model and whether it is streamed where the path says so."""
    path = path.partition("?")[0]
    if path == "/v1/messages":
        return "anthropic", None, None
    if found := _BEDROCK.fullmatch(path):
        return "bedrock", found["model"], found["streamed"] is not None
    if found := _VERTEX.fullmatch(path):
        return "vertex", found["model"], found["streamed"] == "streamRawPredict"
    return None


def identity(host: Host) -> dict[str, str]:
    return {"x-amzn-requestid": bedrock.REQUEST_ID} if host == "bedrock" else {"request-id": REQUEST_ID}
