"""Builders of native chunks, and what a stream of them adds up to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neurolink_mw.protocol import StreamPart, check_grammar
from neurolink_mw.providers.openai_compatible.stream import ChatStream, NativeEvent

Json = dict[str, Any]


def chunk(delta: Json | None = None, finish_reason: str | None = None, **more: Any) -> Json:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish_reason}
    return {"id": "c-1", "created": 1_760_000_000, "model": "m", "choices": [choice], **more}


def call(index: int | None = None, id: str | None = None, name: str | None = None, arguments: Any = None) -> Json:
    fragment: Json = {"function": {}}
    if index is not None:
        fragment["index"] = index
    if id is not None:
        fragment["id"] = id
    if name is not None:
        fragment["function"]["name"] = name
    if arguments is not None:
        fragment["function"]["arguments"] = arguments
    return fragment


STOP = chunk(finish_reason="stop")
CALLS = chunk(finish_reason="tool_calls")


def parts_of(*events: NativeEvent, **settings: Any) -> list[StreamPart]:
    machine = ChatStream(**settings)
    parts = [*machine.start(), *(part for event in events for part in machine.feed(event)), *machine.finish()]
    check_grammar(parts)
    return parts


def kinds(parts: Iterable[StreamPart]) -> list[str]:
    return [part.type for part in parts]
