"""Making, copying and writing protocol values, against plain dicts that hold the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from hashlib import sha256

import orjson

from neurolink_mw import to_json
from neurolink_mw.protocol import (
    AssistantMessage,
    CallOptions,
    Message,
    SystemMessage,
    TextDelta,
    TextOutput,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    UserMessage,
)

from .figure import Figure, Floor, Goal, Measured
from .measure import Contender, Effort, race


def measure(effort: Effort) -> Measured:
    return asyncio.run(_measure(effort))


async def _measure(effort: Effort) -> Measured:
    options = CallOptions(_conversation(), max_output_tokens=500, temperature=0.2, metadata={"tenant": "a"})
    plain = to_json(options)
    assert isinstance(plain, dict)
    taken = await race(
        {
            "dict of 4 keys": Contender(_dicts),
            "TextDelta": Contender(_deltas),
            "copy of a dict": Contender(_dict_copies(plain)),
            "replace": Contender(_replacements(options)),
            "json.dumps": _repeated(lambda: json.dumps(plain)),
            "to_json": _repeated(lambda: to_json(options)),
            "json.dumps + sha256": _repeated(lambda: _digest(json.dumps(plain, sort_keys=True).encode())),
            "to_json + orjson + sha256": _repeated(
                lambda: _digest(orjson.dumps(to_json(options), option=orjson.OPT_SORT_KEYS))
            ),
        },
        effort,
    )

    building = Goal(0.5, of="value", where_floor_took=0.071)
    replacing = Goal(1.0, of="value", where_floor_took=0.1)

    def figure(what: str, name: str, floor: str, goal: Goal | None = None) -> Figure:
        return Figure(f"values.{what}", taken[name], "us", Floor(floor, taken[floor]), goal=goal)

    return [
        figure("building a TextDelta", "TextDelta", "dict of 4 keys", building),
        figure("CallOptions.replace of one field", "replace", "copy of a dict", replacing),
        figure("to_json of 20 messages", "to_json", "json.dumps"),
        figure("digest of 20 messages", "to_json + orjson + sha256", "json.dumps + sha256"),
    ]


def _conversation() -> tuple[Message, ...]:
    """20 messages: a system message, then questions with a tool call, its result and an answer."""
    turn: list[Message] = [
        UserMessage((TextPart("What is the weather in Paris? " * 4), TextPart("Be brief."))),
        AssistantMessage((TextPart("I will look."), ToolCallPart("call-1", "weather", {"city": "Paris", "days": 3}))),
        ToolMessage((ToolResultPart("call-1", "weather", TextOutput("Sunny, 21 degrees.")),)),
        AssistantMessage((TextPart("It is sunny in Paris, at 21 degrees. " * 4),)),
    ]
    return (SystemMessage("You are a helpful assistant."), *(turn * 5)[:19])


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()


def _repeated(once: Callable[[], object]) -> Contender:
    def run(times: int) -> None:
        for _ in range(times):
            once()

    return Contender(run)


# What takes a tenth of a microsecond is written into its loop: calling a function would cost as much again.


def _dicts(times: int) -> None:
    for _ in range(times):
        {"type": "text-delta", "id": "t", "delta": "word ", "provider_metadata": None}  # noqa: B018


def _deltas(times: int) -> None:
    for _ in range(times):
        TextDelta("t", "word ")


def _dict_copies(plain: dict[str, object]) -> Callable[[int], None]:
    def run(times: int) -> None:
        for _ in range(times):
            {**plain, "temperature": 0.5}  # noqa: B018

    return run


def _replacements(options: CallOptions) -> Callable[[int], None]:
    def run(times: int) -> None:
        for _ in range(times):
            options.replace(temperature=0.5)

    return run
