"""Broken: streamed and generated answers that do not say the same."""

from __future__ import annotations

from collections.abc import AsyncIterator

from neurolink_mw.pipeline import Middleware
from neurolink_mw.protocol import (
    CallOptions,
    Finish,
    FinishReason,
    GenerateResult,
    LanguageModel,
    PartStream,
    Source,
    StreamPart,
    StreamResult,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputDelta,
)

from .kit import Passing, with_text


def redacted(text: str) -> str:
    return text.replace("Hello", "Bonjour").replace("ends", "stops")


class RewritesPieceByPiece(Passing):
    def whole(self, result: GenerateResult) -> GenerateResult:
        return with_text(result, redacted)

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part.replace(delta=redacted(part.delta)) if isinstance(part, TextDelta) else part


class RewritesWholeAnswersOnly(Middleware):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return with_text(await model.do_generate(options), str.upper)


class ForgetsTheTail(Passing):
    """Holds the last characters of a block, in case they are half of something, and never lets them go."""

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        held: dict[str, str] = {}
        async for part in stream:
            if isinstance(part, TextDelta):
                text = held.get(part.id, "") + part.delta
                held[part.id] = text[-3:]
                yield part.replace(delta=text[:-3])
            else:
                yield part


class EndsEveryStreamWell(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part.replace(finish_reason=FinishReason("stop")) if isinstance(part, Finish) else part


class LosesTheUsage(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield Finish(part.finish_reason) if isinstance(part, Finish) else part


class LeavesOutSources(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            if not isinstance(part, Source):
                yield part


class RewritesToolInputsInPiecesOnly(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part.replace(delta=part.delta.upper()) if isinstance(part, ToolInputDelta) else part


class KnowsOneBlockAtATime(Passing):
    """Collects "the current block" and lets it go when it ends."""

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        current = ""
        async for part in stream:
            if isinstance(part, TextStart):
                current = ""
            elif isinstance(part, TextDelta):
                current += part.delta
                continue
            elif isinstance(part, TextEnd):
                yield TextDelta(part.id, current)
            yield part


class TakesAnEmptyIdForNone(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            if not isinstance(part, TextDelta) or part.id:
                yield part


class SaysEverythingInManyPieces(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part
            if isinstance(part, TextDelta):
                for _ in range(3):
                    yield TextDelta(part.id, "")


class LooksAtAllThatItHasEachTime(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        held: list[str] = []
        async for part in stream:
            if isinstance(part, TextDelta):
                held.append(part.delta)
                if all(piece.isascii() for piece in held) and "".join(held).endswith("stop"):
                    break
            yield part


class FailsOnAnEmptyAnswer(Passing):
    def whole(self, result: GenerateResult) -> GenerateResult:
        return with_text(result, lambda text: text[0] + text[1:])


class FailsOnEveryAnswer(Passing):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_generate(options)
        raise KeyError("score")

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        await (await model.do_stream(options)).stream.aclose()
        raise KeyError("score")


class NumbersWhatItFinds(Passing):
    """Across all calls that it is in, and in each whole text at once."""

    found = 0

    def whole(self, result: GenerateResult) -> GenerateResult:
        return with_text(result, self.numbered)

    def numbered(self, text: str) -> str:
        while "bob" in text:
            self.found += 1
            text = text.replace("bob", f"<{self.found}>", 1)
        return text

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        held: dict[str, str] = {}
        async for part in stream:
            if isinstance(part, TextDelta):
                held[part.id] = held.get(part.id, "") + part.delta
                continue
            for id in [id for id in held if isinstance(part, Finish) or getattr(part, "id", None) == id]:
                yield TextDelta(id, self.numbered(held.pop(id)))
            yield part
        for id, text in held.items():
            yield TextDelta(id, self.numbered(text))


class ChangesTheFirstOnly(Passing):
    """In streams, where it takes each block for one match at most."""

    def whole(self, result: GenerateResult) -> GenerateResult:
        return with_text(result, lambda text: text.replace("zebra", "horse"))

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        held: dict[str, str] = {}
        async for part in stream:
            if isinstance(part, TextDelta):
                held[part.id] = held.get(part.id, "") + part.delta
                continue
            if isinstance(part, TextEnd) and part.id in held:
                yield TextDelta(part.id, held.pop(part.id).replace("zebra", "horse", 1))
            yield part


class LetsDeltasOfNoBlockPass(Passing):
    def whole(self, result: GenerateResult) -> GenerateResult:
        return with_text(result, str.upper)

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        opened: set[str] = set()
        async for part in stream:
            if isinstance(part, TextStart):
                opened.add(part.id)
            elif isinstance(part, TextEnd):
                opened.discard(part.id)
            elif isinstance(part, TextDelta) and part.id in opened:
                part = part.replace(delta=part.delta.upper())
            yield part


class LetsLateDeltasPass(LetsDeltasOfNoBlockPass):
    """Only those of a block that has ended."""

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        ended: set[str] = set()
        async for part in stream:
            if isinstance(part, TextEnd):
                ended.add(part.id)
            elif isinstance(part, TextDelta) and part.id not in ended:
                part = part.replace(delta=part.delta.upper())
            yield part
