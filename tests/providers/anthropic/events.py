"""Builders of native messages and of the events that a message is streamed as, and what a stream of them adds up to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from neurolink_mw.protocol import StreamPart, check_grammar
from neurolink_mw.providers.anthropic.stream import MessageStream, NativeEvent

Json = dict[str, Any]

MODEL = "claude-sonnet-4-5"
USAGE: Json = {"input_tokens": 11, "output_tokens": 8}
PAGE: Json = {
    "type": "web_search_result",
    "url": "https://w.test/1",
    "title": "One",
    "encrypted_content": "EE",
    "page_age": None,
}
WEB_CITATION: Json = {
    "type": "web_search_result_location",
    "url": "https://w.test/1",
    "title": "One",
    "encrypted_index": "EI",
    "cited_text": "one",
}


def own(**metadata: Any) -> Json:
    return {"anthropic": metadata}


def own_metadata(metadata: Any) -> Json:
    """What an answer or a part says under our name."""
    under: Json = metadata["anthropic"]
    return under


# ------------------------------------------------------------------------------------------------------------- blocks


def text(said: str, *citations: Json) -> Json:
    return {"type": "text", "text": said, **({"citations": list(citations)} if citations else {})}


def thinking(said: str, signature: str = "SG") -> Json:
    return {"type": "thinking", "thinking": said, "signature": signature}


def redacted(data: str = "RD") -> Json:
    return {"type": "redacted_thinking", "data": data}


def use(id: str = "t1", name: str = "look", input: Any = None, **more: Any) -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": {"q": 1} if input is None else input, **more}


def server_use(id: str = "s1", name: str = "web_search", input: Any = None, **more: Any) -> Json:
    return use(id, name, {"query": "x"} if input is None else input, **more) | {"type": "server_tool_use"}


def server_result(id: str = "s1", kind: str = "web_search", content: Any = None, **more: Any) -> Json:
    return {"type": f"{kind}_tool_result", "tool_use_id": id, "content": [PAGE] if content is None else content, **more}


def mcp_use(id: str = "m1", name: str = "echo", input: Any = None, server: str = "srv") -> Json:
    return use(id, name, input) | {"type": "mcp_tool_use", "server_name": server}


def mcp_result(id: str = "m1", said: str = "one", is_error: bool = False) -> Json:
    return server_result(id, "mcp", [{"type": "text", "text": said}], is_error=is_error)


def message(*blocks: Json, reason: str | None = "end_turn", **more: Any) -> Json:
    """What `messages.create` answers."""
    return {
        "type": "message",
        "id": "msg-1",
        "role": "assistant",
        "model": MODEL,
        "content": list(blocks),
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": USAGE,
        **more,
    }


# ------------------------------------------------------------------------------------------------------------- events


def start(block: Json, index: int = 0) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int = 0, **piece: Any) -> Json:
    """A delta of the type that its only member says; `type` overrules it."""
    kinds = {"text": "text", "thinking": "thinking", "signature": "signature", "partial_json": "input_json"}
    kind = piece.pop("type", None) or f"{kinds.get(next(iter(piece)), 'citations')}_delta"
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **piece}}


def stop(index: int = 0) -> Json:
    return {"type": "content_block_stop", "index": index}


def began(**more: Any) -> Json:
    usage = {"input_tokens": 11, "output_tokens": 1}
    return {"type": "message_start", "message": message(reason=None) | {"usage": usage} | more}


def ended(reason: str | None = "end_turn", usage: Json | None = None, **more: Any) -> Json:
    changes = {"stop_reason": reason, "stop_sequence": None, **more}
    return {"type": "message_delta", "delta": changes, "usage": usage or {"output_tokens": 8}}


PING: Json = {"type": "ping"}
STOPPED: Json = {"type": "message_stop"}
BEGIN: Json = began()
END: list[Json] = [ended(), STOPPED]
CALLED: list[Json] = [ended("tool_use"), STOPPED]


TEXT: list[Json] = [BEGIN, PING, start(text("")), delta(text="Hel"), delta(text="lo"), stop(), *END]
"""A stream that says Hello."""


def call_events(*inputs: str, id: str = "t1", name: str = "look", index: int = 0, given: Any = None) -> list[Json]:
    """A call with these pieces of its input. given: the input in its start."""
    begin = start(use(id, name) | {"input": {} if given is None else given}, index)
    return [begin, *(delta(index, partial_json=piece) for piece in inputs), stop(index)]


def failed(kind: str = "overloaded_error", said: str = "busy") -> Json:
    return {"type": "error", "error": {"type": kind, "message": said}}


def events_of(native: Json, size: int = 3) -> list[Json]:
    """The events that the API streams a message as, its texts and inputs in pieces of `size` characters."""
    begin = began(id=native["id"], model=native["model"], usage=native["usage"] | {"output_tokens": 1})
    events = [begin, PING]
    for index, block in enumerate(native["content"]):
        events += [*_block_events(block, index, size), stop(index)]
    kept = {name: native[name] for name in ("context_management", "input_transformations") if name in native}
    more = {name: native[name] for name in ("stop_details", "container") if name in native}
    end = ended(native["stop_reason"], native["usage"], **more)
    end["delta"]["stop_sequence"] = native["stop_sequence"]
    return [*events, end | kept, STOPPED]


def _block_events(block: Json, index: int, size: int) -> Iterator[Json]:
    kind = block["type"]
    if kind == "text":
        yield start({"type": "text", "text": "", **({"citations": []} if "citations" in block else {})}, index)
        yield from (delta(index, text=piece) for piece in pieces(block["text"], size))
        yield from (delta(index, citation=citation) for citation in block.get("citations", ()))
    elif kind == "thinking":
        yield start({"type": "thinking", "thinking": "", "signature": ""}, index)
        yield from (delta(index, thinking=piece) for piece in pieces(block["thinking"], size))
        yield delta(index, signature=block["signature"])
    elif kind in ("tool_use", "server_tool_use"):
        yield start(block | {"input": {}}, index)
        yield delta(index, partial_json="")
        input = json.dumps(block["input"], ensure_ascii=False, separators=(",", ":")) if block["input"] else ""
        yield from (delta(index, partial_json=piece) for piece in pieces(input, size))
    else:
        yield start(block, index)


def pieces(said: str, size: int) -> Iterator[str]:
    return (said[at : at + size] for at in range(0, len(said), size))


def framed(*events: Json) -> bytes:
    """Events as the API sends them."""
    texts = (f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events)
    return "".join(texts).encode()


# ------------------------------------------------------------------------------------------------------------ reading


def parts_of(*events: NativeEvent, **settings: Any) -> list[StreamPart]:
    machine = MessageStream(**settings)
    parts = [*machine.start(), *(part for event in events for part in machine.feed(event)), *machine.finish()]
    check_grammar(parts)
    return parts


def kinds(parts: Iterable[StreamPart]) -> list[str]:
    """The types of the parts after the one that opens every stream."""
    return [part.type for part in list(parts)[1:]]
