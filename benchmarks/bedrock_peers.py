"""Events of a ConverseStream through other libraries, against boto3 iterated by hand and our own model: by the same
server and the same clock, in the same run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from neurolink_mw.providers.bedrock import BedrockModel

from .bedrock_events import ASKED, MODEL_ID, client, iterated, repeated
from .child import serving
from .figure import Figure, Floor, Lead, Measured, Skipped
from .measure import Effort, race

_Once = Callable[[], Awaitable[None]]


def measure(effort: Effort) -> Measured:
    with serving("benchmarks.bedrock_server", "burst") as base_url:
        return asyncio.run(_measure(base_url, effort))


async def _measure(base_url: str, effort: Effort) -> Measured:
    figures: Measured = []
    theirs: dict[str, _Once] = {}
    for distribution, make in _PEERS.items():
        try:
            theirs[f"{distribution} {version(distribution)}"] = make(base_url)
        except (PackageNotFoundError, ImportError):
            why = f"{distribution} is not installed: pip install 'neurolink-mw[peers]'"
            figures.append(Skipped(f"bedrock_peers.{distribution}", why))
    async with BedrockModel(MODEL_ID, client=client(base_url)) as model:

        async def ours() -> None:
            async for _part in (await model.do_stream(ASKED)).stream:
                pass

        once: dict[str, _Once] = {"boto3": iterated(client(base_url)), "ours": ours, **theirs}
        taken = await race({name: repeated(one) for name, one in once.items()}, effort)
    floor = Floor("boto3, iterated", taken["boto3"])
    for name in theirs:
        goal = Lead(_LEADS[name.partition(" ")[0]])
        figures.append(Figure(f"bedrock_peers.{name}", taken[name], "us/event", floor, 0, goal, taken["ours"]))
    return figures


def _pydantic_ai(base_url: str) -> _Once:
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    model: Any = BedrockConverseModel(MODEL_ID, provider=BedrockProvider(bedrock_client=client(base_url)))

    async def once() -> None:
        async with model_request_stream(model, [ModelRequest.user_text_prompt("Hello")]) as events:
            async for _event in events:
                pass

    return once


def _langchain_aws(base_url: str) -> _Once:
    from langchain_aws import ChatBedrockConverse

    model: Any = ChatBedrockConverse(model=MODEL_ID, client=client(base_url), region_name="us-east-1")

    async def once() -> None:
        async for _chunk in model.astream("Hello"):
            pass

    return once


def _strands(base_url: str) -> _Once:
    import boto3
    from strands.models import BedrockModel as Strands

    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    model: Any = Strands(boto_session=session, endpoint_url=base_url, model_id=MODEL_ID)

    async def once() -> None:
        async for _event in model.stream([{"role": "user", "content": [{"text": "Hello"}]}]):
            pass

    return once


_PEERS: Final[dict[str, Callable[[str], _Once]]] = {
    "pydantic-ai-slim": _pydantic_ai,
    "langchain-aws": _langchain_aws,
    "strands-agents": _strands,
}
_LEADS: Final = {"pydantic-ai-slim": 5, "langchain-aws": 5, "strands-agents": 1.3}
"""How many times what ours costs an event of theirs costs at least."""
