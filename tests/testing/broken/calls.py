"""Broken: what is left open, swallowed, or shared between calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextvars import ContextVar

import anyio

from neurolink_mw.protocol import (
    CallOptions,
    ErrorPart,
    GenerateResult,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    TextDelta,
    collect,
    user_text,
)

from .kit import Passing, with_text


class LeavesTheModelOpen(Passing):
    """Its own stream knows no close function, and an unread generator runs no `finally`."""

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        result = await model.do_stream(options)
        return StreamResult(PartStream(self.parts(result.stream)))


class OpensAStreamForNothing(Passing):
    """It changes its mind, and asks for a whole answer."""

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_stream(options)
        return await model.do_generate(options)


class RaisesWhenItIsLeft(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        try:
            async for part in stream:
                yield part
        except GeneratorExit:
            raise RuntimeError("who left?") from None


class ReadsThroughAGeneratorOfItsOwn(Passing):
    """Which is left to the garbage collector when the caller leaves."""

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in self._texts(stream):
            yield part

    async def _texts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part


class StoresAfterTheLoop(Passing):
    may_answer = True

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, GenerateResult] = {}

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        key = user_text(options.prompt)
        if key in self.stored:
            return StreamResult.of(self.stored[key])

        async def storing(stream: PartStream) -> AsyncIterator[StreamPart]:
            parts = []
            async for part in stream:
                parts.append(part)
                yield part
            self.stored[key] = collect(parts)

        return (await model.do_stream(options)).through(storing)


class RetriesWithoutClosing(Passing):
    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        for _ in range(3):
            result = await model.do_stream(options)
            head = [await result.stream.__anext__(), await result.stream.__anext__()]
            if not isinstance(head[1], ErrorPart):
                break
        rest = result.stream

        async def whole(stream: PartStream) -> AsyncIterator[StreamPart]:
            for part in head:
                yield part
            async for part in stream:
                yield part

        return result.replace(stream=rest.through(whole))


class AnswersWhenCancelled(Passing):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            return await model.do_generate(options)
        except BaseException:
            return GenerateResult()


class EndsQuietlyWhenCancelled(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        try:
            async for part in stream:
                yield part
        except anyio.get_cancelled_exc_class():
            return


class FailsWhenCancelled(Passing):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            return await model.do_generate(options)
        except BaseException as error:
            raise RuntimeError("the call failed") from error


class KeepsTheTextOnItself(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        self.length = 0
        async for part in stream:
            if isinstance(part, TextDelta):
                self.length += len(part.delta)
                yield part.replace(delta=part.delta if self.length <= 30 else "")
            else:
                yield part

    def whole(self, result: GenerateResult) -> GenerateResult:
        return with_text(result, lambda text: text[:30])


class KeepsTheRequestOnItself(Passing):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        self.options = options
        result = await model.do_generate(options)
        return with_text(result, lambda text: f"{text} ({user_text(self.options.prompt)})")


class RemembersTheFirstModel(Passing):
    first: LanguageModel | None = None

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        self.first = self.first or model
        return await self.first.do_generate(options)


class WritesIntoTheOptions(Passing):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        if isinstance(options.provider_options, dict):
            options.provider_options["scripted"] = {"cache": True}
        return await model.do_generate(options)


class RetriesAfterContent(Passing):
    """Begins again from the start, whatever has left."""

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        async def trying(stream: PartStream) -> AsyncIterator[StreamPart]:
            try:
                async for part in stream:
                    yield part
            except Exception:
                async with (await model.do_stream(options)).stream as again:
                    async for part in again:
                        yield part

        return (await model.do_stream(options)).through(trying)


class LimitsTheTimeAroundAYield(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        with anyio.move_on_after(60):
            async for part in stream:
                yield part


_TRACE: ContextVar[str] = ContextVar("trace", default="")


class SetsAVariableAroundAYield(Passing):
    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        token = _TRACE.set("streaming")
        async for part in stream:
            yield part
        _TRACE.reset(token)


class ResetsAVariableAtTheEnd(Passing):
    """Also when it is left; but until then its reader has it."""

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        token = _TRACE.set("streaming")
        try:
            async for part in stream:
                yield part
        finally:
            _TRACE.reset(token)


class SetsAVariable(Passing):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        _TRACE.set("generating")
        return await model.do_generate(options)


class NeverComesBack(Passing):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        await anyio.sleep_forever()
        return await model.do_generate(options)


class KnowsAsyncioOnly(Passing):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        await asyncio.sleep(0)
        return await model.do_generate(options)
