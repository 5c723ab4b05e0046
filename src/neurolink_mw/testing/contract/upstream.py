"""The model under the middleware: it plays a script, waits once before it answers, and remembers what it opened."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.lowlevel

from ...protocol import SPECIFICATION_VERSION, CallOptions, GenerateResult, PartStream, StreamResult
from ..scripted import ScriptedCall, ScriptedModel, ScriptedReply


class Upstream:
    """Plays `replies` over and over, so that a middleware may ask as often as it likes."""

    specification_version = SPECIFICATION_VERSION
    provider = "scripted"

    def __init__(self, replies: Sequence[ScriptedReply], model_id: str = "scripted-1") -> None:
        self._scripted = ScriptedModel(replies, model_id=model_id, repeat=True)
        self._opened: list[tuple[ScriptedCall, PartStream]] = []
        self.model_id = model_id

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        await anyio.lowlevel.checkpoint()
        return await self._scripted.do_generate(options)

    async def do_stream(self, options: CallOptions) -> StreamResult:
        await anyio.lowlevel.checkpoint()
        result = await self._scripted.do_stream(options)
        # Kept, so that what a middleware leaves open is neither closed by the garbage collector nor warned about.
        self._opened.append((self._scripted.calls[-1], result.stream))
        return result

    @property
    def calls(self) -> list[ScriptedCall]:
        """What it was asked for the user, without the calls that a middleware made for itself."""
        return [call for call in self._scripted.calls if not call.options.context.helper]

    def closings(self) -> tuple[int, ...]:
        """How often each stream that it opened was closed."""
        return tuple(call.closed for call, _ in self._opened)

    async def close_what_is_left(self) -> None:
        for _, stream in self._opened:
            await stream.aclose()
