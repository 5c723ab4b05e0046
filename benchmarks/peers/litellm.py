"""LiteLLM: `acompletion` with a mock response and N `CustomLogger`, with what they are told in the background."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would be fetched at import

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

from ..chains import DELTAS
from ..measure import Contender

_LISTS = [
    *("callbacks", "input_callback", "success_callback", "failure_callback"),
    *("_async_input_callback", "_async_success_callback", "_async_failure_callback"),
]


class Listening(CustomLogger):  # type: ignore[misc, unused-ignore]
    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        return None


async def contenders(n: int) -> dict[str, Contender]:
    ask: Callable[..., Any] = litellm.acompletion
    loggers = [Listening() for _ in range(n)]
    question = [{"role": "user", "content": "Hello"}]
    answer = "word " * DELTAS

    def activate() -> None:
        """Callbacks are global there: each contender puts up its own."""
        for name in _LISTS:
            setattr(litellm, name, [])
        litellm.callbacks = list(loggers)

    async def call(times: int) -> None:
        activate()
        for _ in range(times):
            await ask(model="gpt-4o", messages=question, mock_response="Hi")
        await GLOBAL_LOGGING_WORKER.flush()

    async def stream_once() -> int:
        parts = 0
        async for _part in await ask(model="gpt-4o", messages=question, mock_response=answer, stream=True):
            parts += 1
        return parts

    async def stream(times: int) -> None:
        activate()
        for _ in range(times):
            await stream_once()
        await GLOBAL_LOGGING_WORKER.flush()

    return {
        "turn: acompletion, CustomLogger": Contender(call),
        "part of a turn: acompletion(stream=True), CustomLogger": Contender(stream, units=await stream_once()),
    }
