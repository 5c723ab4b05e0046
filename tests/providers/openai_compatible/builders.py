"""Builders that the tests of the model share."""

from __future__ import annotations

from typing import Any

from neurolink_mw.protocol import CallOptions
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel
from neurolink_mw.testing.wire import ScriptedServer, openai

HI = CallOptions.from_text("Hi")
KEY = "key-that-nobody-may-see"
CHUNK = openai.chunk({"content": "x"})
STOP = openai.chunk({}, finish_reason="stop")


def model(server: ScriptedServer, **settings: Any) -> OpenAICompatibleModel:
    return OpenAICompatibleModel("m", base_url=server.base_url, api_key=KEY, **settings)
