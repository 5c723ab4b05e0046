"""`simulate_streaming`: streams for a model that only gives whole answers."""

from __future__ import annotations

from typing import ClassVar

from ..pipeline import Middleware, MiddlewareConfig, Stage
from ..pipeline.member import Effect
from ..protocol import CallOptions, LanguageModel, StreamResult


class SimulateStreamingConfig(MiddlewareConfig):
    """It has no options."""


class SimulateStreaming(Middleware):
    """Asks for a whole answer where a stream is wanted, and gives it out as one.

    Each text and each reasoning comes as one block of one piece, with its metadata; all else comes as it is. Nothing
    arrives before the answer is there, and a failure is raised from the call, never told in the stream.
    """

    stage: ClassVar[int] = Stage.ADAPT
    reads: ClassVar[frozenset[Effect]] = frozenset({"output"})
    Config = SimulateStreamingConfig

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(await model.do_generate(options))
