"""Broken: what a middleware has no business with, and loses all the same."""

from __future__ import annotations

from collections.abc import AsyncIterator

from neurolink_mw.protocol import (
    CallOptions,
    File,
    GenerateResult,
    LanguageModel,
    PartStream,
    Reasoning,
    Source,
    StreamPart,
    StreamResult,
    StreamStart,
    Text,
    ToolApprovalRequest,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    UnknownPart,
)

from .kit import Passing


class LosesToolResultsInStreams(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            if not isinstance(part, ToolResult | File | ToolApprovalRequest):
                yield part


class LosesToolResultsInWholeAnswers(Passing):
    def whole(self, result: GenerateResult) -> GenerateResult:
        known = (Text, Reasoning, ToolCall, Source, UnknownPart)
        return result.replace(content=[item for item in result.content if isinstance(item, known)])


class LosesWhatItDoesNotKnow(Passing):
    """In both calls alike."""

    def whole(self, result: GenerateResult) -> GenerateResult:
        return result.replace(content=[item for item in result.content if not isinstance(item, UnknownPart)])

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            if not isinstance(part, UnknownPart):
                yield part


class SaysThatTheProviderRunsTools(Passing):
    def whole(self, result: GenerateResult) -> GenerateResult:
        return result.replace(
            content=[
                item.replace(provider_executed=True) if isinstance(item, ToolCall) else item for item in result.content
            ]
        )

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part.replace(provider_executed=True) if isinstance(part, ToolCall) else part


class MakesNewToolParts(Passing):
    """As it makes them, they have neither metadata nor flags."""

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            if isinstance(part, ToolInputStart):
                yield ToolInputStart(part.id, part.tool_name)
            elif isinstance(part, ToolInputDelta):
                yield ToolInputDelta(part.id, part.delta)
            elif isinstance(part, ToolInputEnd):
                yield ToolInputEnd(part.id)
            elif isinstance(part, ToolCall):
                yield ToolCall(part.tool_call_id, part.tool_name, part.input)
            else:
                yield part


class MakesNewToolCalls(Passing):
    def whole(self, result: GenerateResult) -> GenerateResult:
        return result.replace(
            content=[
                ToolCall(item.tool_call_id, item.tool_name, item.input, item.provider_executed, item.dynamic)
                if isinstance(item, ToolCall)
                else item
                for item in result.content
            ]
        )


class LosesWarningsOfStreams(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield StreamStart() if isinstance(part, StreamStart) else part


class LosesWarningsOfWholeAnswers(Passing):
    def whole(self, result: GenerateResult) -> GenerateResult:
        return result.replace(warnings=())


class MakesANewStreamResult(Passing):
    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult((await model.do_stream(options)).stream)


class LosesTheResponse(Passing):
    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).replace(response=None)


class LosesTheRequest(Passing):
    def whole(self, result: GenerateResult) -> GenerateResult:
        return result.replace(request=None)
