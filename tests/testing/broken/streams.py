"""Broken: streams that come out malformed, without their metadata, or without what failed in them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from neurolink_mw.protocol import (
    CallOptions,
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    LanguageModel,
    PartStream,
    Raw,
    StreamPart,
    StreamResult,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
)

from .kit import Passing


class DropsTheEndsOfBlocks(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            if not isinstance(part, TextEnd):
                yield part


class MakesNewDeltas(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield TextDelta(part.id, part.delta) if isinstance(part, TextDelta) else part


class MakesNewStarts(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield TextStart(part.id) if isinstance(part, TextStart) else part


class MakesNewContent(Passing):
    def whole(self, result: GenerateResult) -> GenerateResult:
        return result.replace(content=[Text(item.text) if isinstance(item, Text) else item for item in result.content])


class MakesANewResult(Passing):
    def whole(self, result: GenerateResult) -> GenerateResult:
        return GenerateResult(
            result.content,
            result.finish_reason,
            result.usage,
            provider_metadata=result.provider_metadata,
            extra=result.extra,
        )


class CopiesRawParts(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield Raw(part.raw_value) if isinstance(part, Raw) else part


class PassesTheFirstRawPartOnly(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        first = True
        async for part in stream:
            if not isinstance(part, Raw) or first:
                yield part
            first = first and not isinstance(part, Raw)


class HoldsRawPartsBack(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        held: list[StreamPart] = []
        async for part in stream:
            if isinstance(part, Raw):
                held.append(part)
                continue
            if isinstance(part, Finish):
                for raw in held:
                    yield raw
            yield part


class WritesIntoRawParts(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            if isinstance(part, Raw) and isinstance(part.raw_value, dict):
                part.raw_value["text"] = "***"
            yield part


class KnowsOnlyBlocksThatBegan(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        lengths: dict[str, int] = {}
        async for part in stream:
            if isinstance(part, TextStart):
                lengths[part.id] = 0
            elif isinstance(part, TextDelta):
                lengths[part.id] += len(part.delta)
            yield part


class MakesUpAnEnd(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        part: StreamPart | None = None
        async for part in stream:
            yield part
        if not isinstance(part, Finish):
            yield Finish(FinishReason("stop"))


class WaitsForTheEndOfTheBlock(Passing):
    """What it holds of a block that never ends is lost."""

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        held: dict[str, list[StreamPart]] = {}
        async for part in stream:
            if isinstance(part, TextDelta):
                held.setdefault(part.id, []).append(part)
                continue
            if isinstance(part, TextEnd):
                for delta in held.pop(part.id, []):
                    yield delta
            yield part


class LeavesOutErrors(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            if not isinstance(part, ErrorPart):
                yield part


class AnswersNothingInstead(Passing):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            return await model.do_generate(options)
        except Exception:
            return GenerateResult()

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        try:
            async for part in stream:
                yield part
        except Exception:
            yield Finish(FinishReason("stop"))


class HidesTheCause(Passing):
    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        try:
            return await model.do_stream(options)
        except Exception:
            raise RuntimeError("the model is not available") from None


class BeginsTwice(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        yield StreamStart()
        async for part in stream:
            yield part
