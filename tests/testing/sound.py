"""Middlewares that keep the contract, of the kinds that people write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import anyio
from anyio.abc import TaskGroup

from neurolink_mw.errors import NeurolinkError, ProviderError
from neurolink_mw.pipeline import Middleware, Stage
from neurolink_mw.protocol import (
    Accumulator,
    CallOptions,
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    Kind,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    Text,
    TextDelta,
    TextEnd,
    collect,
    primed,
    to_json,
    user,
)

SECRET = "secret"


def _with_text(result: GenerateResult, change: Callable[[str], str]) -> GenerateResult:
    content = [item.replace(text=change(item.text)) if isinstance(item, Text) else item for item in result.content]
    return result.replace(content=content)


class PassThrough(Middleware):
    pass


class Upper:
    def delta(self, text: str) -> str:
        return text.upper()

    def end(self) -> str:
        return ""


class Uppercase(Middleware):
    writes = frozenset({"output"})

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options)
        return result.replace(
            content=[
                item.replace(text=item.text.upper()) if isinstance(item, Text) else item for item in result.content
            ]
        )

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).blocks(lambda kind, id: Upper())


class Redact(Middleware):
    """Replaces a word, in whatever pieces it comes: holds what may still become one, and nothing else."""

    stage = Stage.REDACT
    writes = frozenset({"output"})

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options)
        return _with_text(result, lambda text: text.replace(SECRET, "***"))

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).through(_redacted)


async def _redacted(stream: PartStream) -> AsyncIterator[StreamPart]:
    held: dict[str, str] = {}
    async for part in stream:
        if isinstance(part, TextDelta):
            text = (held.get(part.id, "") + part.delta).replace(SECRET, "***")
            half = next(size for size in range(len(SECRET) - 1, -1, -1) if text.endswith(SECRET[:size]))
            held[part.id] = text[len(text) - half :]
            yield part.replace(delta=text[: len(text) - half])
            continue
        if isinstance(part, TextEnd) and held.get(part.id):
            yield TextDelta(part.id, held.pop(part.id))
        if isinstance(part, Finish):
            for id in [id for id, text in held.items() if text]:
                yield TextDelta(id, held.pop(id))
        yield part
    for id in [id for id, text in held.items() if text]:
        yield TextDelta(id, held.pop(id))


class Retry(Middleware):
    stage = Stage.RETRY

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        for _ in range(2):
            try:
                return await model.do_generate(options)
            except ProviderError as error:
                if not error.retryable:
                    raise
        return await model.do_generate(options)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        for _ in range(2):
            try:
                return await primed(await model.do_stream(options))
            except ProviderError as error:
                if not error.retryable:
                    raise
        return await model.do_stream(options)


class Cache(Middleware):
    stage = Stage.CACHE
    may_answer = True

    def __init__(self) -> None:
        super().__init__()
        self._stored: dict[str, GenerateResult] = {}

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        key = _key(model, options)
        if key not in self._stored:
            result = await model.do_generate(options)
            if result.finish_reason.unified == "error":
                return result
            self._stored[key] = result
        return self._stored[key]

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        key = _key(model, options)
        if key in self._stored:
            return StreamResult.of(self._stored[key])

        def store(result: GenerateResult) -> None:
            if result.finish_reason.unified != "error":
                self._stored[key] = result

        return (await model.do_stream(options)).collected(store)


def _key(model: LanguageModel, options: CallOptions) -> str:
    return f"{model.provider}:{model.model_id}:{to_json(options)}"


class Closed(Middleware):
    """Answers by itself, always."""

    may_answer = True
    answer = GenerateResult((Text("We are closed."),), FinishReason("stop"))

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return self.answer

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(self.answer)


class SimulatedStreaming(Middleware):
    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(await model.do_generate(options))


class Judged(Middleware):
    """Asks the same model for its opinion, in a call of its own, and takes no notice of it."""

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options)
        await model.do_generate(options.for_helper([user("Is that good?")]))
        return result


class OneAtATime(Middleware):
    """Keeps further calls waiting until the one before them has ended, however that ends."""

    stage = Stage.LIMIT

    def __init__(self) -> None:
        super().__init__()
        self._free = anyio.Semaphore(1)

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        await self._free.acquire()
        options.context.at_end(lambda outcome: self._free.release())
        return options


class InTheBackground(Middleware):
    """Hands each request to a task that runs as long as its pipeline is open."""

    async def open(self, tasks: TaskGroup) -> None:
        self._send, receive = anyio.create_memory_object_stream[str](100)
        tasks.start_soon(self._take, receive)

    async def _take(self, receive: anyio.abc.ObjectReceiveStream[str]) -> None:
        async with receive:
            async for _ in receive:
                pass

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        await self._send.send(kind)
        return options

    async def aclose(self) -> None:
        await self._send.aclose()


class NotValid(NeurolinkError):
    pass


class Validate(Middleware):
    """Fails on an answer that says the secret. In a stream that is known when it has been said."""

    stage = Stage.VALIDATE

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options)
        if SECRET in result.text:
            raise NotValid("the answer has a secret")
        return result

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).through(self._validated)

    async def _validated(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        answer = Accumulator()
        async for part in stream:
            answer.feed(part)
            if isinstance(part, Finish) and SECRET in answer.result().text:
                yield ErrorPart(NotValid("the answer has a secret"))
                part = part.replace(finish_reason=FinishReason("error"))
            yield part


class RefuseRequests(Middleware):
    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        raise options.context.deny("closed", "We are closed.")


class RefuseAnswers(Middleware):
    """Refuses an answer that says the secret, once it is whole; until then nothing leaves."""

    stage = Stage.GUARD
    monotone = True

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options)
        self._judge(result, options)
        return result

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        async def judged(stream: PartStream) -> AsyncIterator[StreamPart]:
            parts = [part async for part in stream]
            self._judge(collect(parts), options)
            for part in parts:
                yield part

        return (await model.do_stream(options)).through(judged)

    def _judge(self, result: GenerateResult, options: CallOptions) -> None:
        if SECRET in result.text:
            raise options.context.deny("no-secrets", "I cannot say that.")
