"""The tool calls of a stream, put together from fragments that servers label in many ways. No I/O.

In OpenAI's format `index` is the stable key, and id and name come with the first fragment of a call. Other servers
leave out the index, the id or both, repeat them, send the name late, or give every call the index 0. A fragment
belongs to the call with its id, else to the latest with its index, else to the latest call.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from ...errors import ProviderError
from ...protocol import JSON, ErrorPart, JSONObject, StreamPart, ToolCall, ToolInputDelta, ToolInputEnd, ToolInputStart
from ..common.readings import words
from .errors import ErrorReader
from .readings import CallIds, argument_text, signature_metadata


class _Call:
    __slots__ = ("id", "index", "metadata", "name", "pieces", "wire_id")

    def __init__(self, id: str, wire_id: str | None, index: int | None) -> None:
        self.id = id
        self.wire_id = wire_id
        self.index = index
        self.name: str | None = None  # the block begins when the name is known; until then pieces wait
        self.pieces: list[str] = []
        self.metadata: JSONObject | None = None


class ToolDeltas:
    """`feed(fragment)` returns parts as a call's name and input become known; `end()` closes all calls.

    ids: makes ids where the server sent none, or one that another block has.
    """

    __slots__ = ("_by_id", "_by_index", "_calls", "_errors", "_ids", "_provider")

    def __init__(self, provider: str, ids: CallIds, errors: ErrorReader) -> None:
        self._provider = provider
        self._ids = ids
        self._errors = errors
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[int, _Call] = {}

    def feed(self, fragment: Mapping[str, JSON]) -> list[StreamPart]:
        """The parts that one entry of `delta.tool_calls` makes."""
        function = fragment.get("function")
        function = function if isinstance(function, Mapping) else {}
        name, arguments = words(function.get("name")), argument_text(function.get("arguments"), self._errors)
        index = fragment.get("index")
        call = self._find(words(fragment.get("id")), index if type(index) is int else None, name, arguments)
        call.metadata = signature_metadata(fragment, self._provider) or call.metadata
        if call.name is not None:
            if not arguments:
                return []
            call.pieces.append(arguments)
            return [ToolInputDelta(call.id, arguments)]
        if arguments:
            call.pieces.append(arguments)
        if name is None:
            return []
        call.name = name
        begin = ToolInputStart(call.id, name)
        return [begin, ToolInputDelta(call.id, "".join(call.pieces))] if call.pieces else [begin]

    def end(self, *, whole: bool, status: int | None = None) -> tuple[list[StreamPart], ProviderError | None]:
        """Close every call, in order. whole: the model had finished; else no call is passed on, only its block closed.
        status: of the HTTP answer.

        The error: a call whose name never came, which cannot be passed on either.
        """
        parts: list[StreamPart] = []
        error: ProviderError | None = None
        for call in self._calls:
            if call.name is not None:
                parts.append(ToolInputEnd(call.id))
                if whole:
                    input = "".join(call.pieces) or "{}"
                    parts.append(ToolCall(call.id, call.name, input, provider_metadata=call.metadata))
            elif whole:
                said = {"id": call.id, "arguments": "".join(call.pieces)}
                error = self._errors.malformed("a tool call of the stream never got a name", said, status=status)
                parts.append(ErrorPart(error))
        self._calls.clear()
        return parts, error

    def _find(self, wire_id: str | None, index: int | None, name: str | None, arguments: str) -> _Call:
        call = self._known(wire_id, index, name, arguments)
        if call is None:
            call = _Call(self._ids.take(wire_id), wire_id, index)
            self._calls.append(call)
        if wire_id is not None:
            self._by_id.setdefault(wire_id, call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _known(self, wire_id: str | None, index: int | None, name: str | None, arguments: str) -> _Call | None:
        latest = self._calls[-1] if self._calls else None
        guess = latest if index is None else self._by_index.get(index)
        if wire_id is None:
            return None if guess is None or _is_another(guess, name, arguments) else guess
        if guess is not None and guess.wire_id == wire_id:
            return guess
        same_id = self._by_id.get(wire_id)
        if same_id is not None:
            # One id for two calls, told apart by index: the second gets an id of its own.
            twice = name is not None and None not in (index, same_id.index) and index != same_id.index
            return None if twice else same_id
        if guess is not None and guess.wire_id is None and (guess.name is None or name is None):
            self._name_late(guess, wire_id)
            return guess
        return None

    def _name_late(self, call: _Call, wire_id: str) -> None:
        """The id comes after the call's first fragment. Once its block has begun, the made id stays."""
        call.wire_id = wire_id
        if call.name is None:
            call.id = self._ids.take(wire_id)


def _is_another(call: _Call, name: str | None, arguments: str) -> bool:
    """Whether a named fragment without an id begins a new call, although `call` stands where it points.

    Some servers repeat the name with every fragment, others send whole calls without id or index. A second object
    after a complete one can only be a second call.
    """
    if name is None or call.name is None:
        return False
    return name != call.name or (bool(arguments) and _is_complete(call.pieces))


def _is_complete(pieces: list[str]) -> bool:
    try:
        orjson.loads("".join(pieces))
    except orjson.JSONDecodeError:
        return False
    return True
