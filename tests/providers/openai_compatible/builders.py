"""Builders that the tests of the model share."""

from __future__ import annotations

from typing import Any

from neurolink_mw.protocol import CallOptions, StreamPart, check_grammar
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel
from neurolink_mw.testing.wire import Reply, ScriptedServer, openai

HI = CallOptions.from_text("Hi")
KEY = "key-that-nobody-may-see"
CHUNK = openai.chunk({"content": "x"})
STOP = openai.chunk({}, finish_reason="stop")


def model(server: ScriptedServer, **settings: Any) -> OpenAICompatibleModel:
    return OpenAICompatibleModel("m", base_url=server.base_url, api_key=KEY, **settings)


def content(reply: Reply) -> bytes:
    """The body of a reply without pauses."""
    return b"".join(part for part in reply.parts() if isinstance(part, bytes))


def size(reply: Reply) -> int:
    return len(content(reply))


async def read(one: OpenAICompatibleModel, options: CallOptions = HI) -> list[StreamPart]:
    parts = [part async for part in (await one.do_stream(options)).stream]
    check_grammar(parts)
    return parts
