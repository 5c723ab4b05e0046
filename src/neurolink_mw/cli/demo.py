"""`neurolink-mw demo`: a recorded conversation through a real pipeline over real HTTP, with no key and no network."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import typer

from ..config import Pipeline
from ..middlewares.lifecycle import Failed, Finished, Lifecycle, Started
from ..protocol import AssistantMessage, CallOptions, TextPart, user
from ..testing import wire
from ..testing.wire import openai
from ..tools import tool
from .exits import OK, exits
from .output import notes, write
from .run import Report, ask

_QUESTION = "What does a middleware pipeline do?"
_ANSWER = (
    "It stands around every call to a model: each member may change the request, watch the answer, or stop the call. "
    "The model does not know, and neither does your program."
)
_NEXT_QUESTION = "Which members stand around you now?"


def demo() -> None:
    """The command's body: a loopback server that speaks OpenAI's format, and three built-ins around the model."""
    replies: list[wire.ScriptedReply] = [
        openai.answer(deltas=_words(_ANSWER), usage=openai.usage(24, 31)),
        openai.answer(tool_calls=[openai.ToolCall("members", {})], usage=openai.usage(71, 9)),
        _tell_members,
    ]
    _log_to_standard_error()
    with exits(), _no_proxy(), wire.openai_server(replies) as server:
        notes().print(f"a loopback server speaks the OpenAI wire format at {server.base_url}", markup=False)
        code = anyio.run(_converse, server.base_url)
        requests = len(server.journal)
        streamed = all(exchange.json.get("stream") for exchange in server.journal)
    notes().print(f"\nthe server saw {requests} requests, {'all' if streamed else 'not all'} of them streamed")
    raise typer.Exit(code)


def _tell_members(request: wire.Exchange) -> wire.Reply:
    """The model's last answer: it has read what the tool said."""
    *others, last = json.loads(request.json["messages"][-1]["content"])
    text = f"There are {', '.join(others)} and {last}: each of them saw both steps of this turn."
    return openai.answer(deltas=_words(text), usage=openai.usage(92, 22))(request)


async def _converse(base_url: str) -> int:
    report = Report()
    pipeline = Pipeline.from_config(
        {
            "model": {
                "provider": "openai-compatible",
                "model_id": "recorded",
                "base_url": base_url,
                "api_key": "no-key-needed",
            },
            "middlewares": ["logging", {"id": "default_settings", "config": {"temperature": 0.2}}],
        },
        members=[Lifecycle(on_start=_tell, on_finish=_tell, on_error=_tell)],
        statistics=report,
    )
    notes().print(f"{pipeline.explain()}\n", markup=False)

    @tool
    def members() -> tuple[str, ...]:
        """The members of the pipeline, from the outside in."""
        return pipeline.ids

    write(f"\n> {_QUESTION}\n")
    code = await ask(pipeline, CallOptions.from_text(_QUESTION), report, stream=True, as_json=False)
    if code != OK:
        return code
    write(f"\n> {_NEXT_QUESTION}\n")
    history = (user(_QUESTION), AssistantMessage((TextPart(_ANSWER),)), user(_NEXT_QUESTION))
    return await ask(pipeline, CallOptions(history), report, tools=[members], stream=True, as_json=False)


def _tell(event: Started | Finished | Failed) -> None:
    if isinstance(event, Started):
        notes().print(f"[lifecycle] a {event.kind} call to {event.provider}:{event.model_id} begins", markup=False)
    elif isinstance(event, Finished):
        line = "\n" if event.text else ""  # the answer has not ended its own yet
        notes().print(f"{line}[lifecycle] it ended {event.status} after {len(event.text)} characters", markup=False)
    else:
        notes().print(f"\n[lifecycle] it failed: {type(event.error).__name__}", markup=False)


def _words(text: str) -> list[str]:
    words = text.split(" ")
    return [f"{word} " for word in words[:-1]] + [words[-1]]


@contextmanager
def _no_proxy() -> Iterator[None]:
    """A proxy of the environment cannot reach this machine's own loopback."""
    before = {name: os.environ.get(name) for name in ("NO_PROXY", "no_proxy")}
    os.environ |= {name: ",".join(filter(None, (value, "127.0.0.1"))) for name, value in before.items()}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _log_to_standard_error() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
    logger = logging.getLogger("neurolink_mw.calls")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
