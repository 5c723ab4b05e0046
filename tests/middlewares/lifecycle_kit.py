"""What the tests of `lifecycle` share: answers, and callbacks that keep what they are told."""

from __future__ import annotations

from typing import Any

from neurolink_mw import CallOptions, GenerateResult, LanguageModel
from neurolink_mw.middlewares.lifecycle import Chunk, Failed, Finished, Lifecycle, Started
from neurolink_mw.protocol import (
    Finish,
    FinishReason,
    InputTokens,
    OutputTokens,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    Usage,
)

ASKED = CallOptions.from_text("Hello")
COST = Usage(InputTokens(12), OutputTokens(5))
ANSWER = GenerateResult((Text("one "), Text("two")), FinishReason("stop"), COST)
Event = Started | Chunk | Finished | Failed


def parts(*texts: str, end: StreamPart | None = None) -> list[StreamPart]:
    deltas = [TextDelta("0", text) for text in texts]
    return [StreamStart(), TextStart("0"), *deltas, TextEnd("0"), end or Finish(FinishReason("stop"), COST)]


class Told:
    """Callbacks that keep what they get."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    def lifecycle(self, **values: Any) -> Lifecycle:
        return Lifecycle(**{"on_start": self, "on_chunk": self, "on_finish": self, "on_error": self, **values})


async def read(model: LanguageModel, options: CallOptions = ASKED) -> list[StreamPart]:
    result = await model.do_stream(options)
    async with result.stream as stream:
        return [part async for part in stream]


async def call(model: LanguageModel, streamed: bool) -> None:
    await (read(model) if streamed else model.do_generate(ASKED))
