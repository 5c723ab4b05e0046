"""Checks of the contracts: is this stream well-formed, does this model keep its promises? Failures are AssertionErrors
that say what to do."""

from __future__ import annotations

from collections.abc import Iterable

import anyio

from ..errors import ProtocolError, ProviderError
from ..protocol import (
    INTERRUPTED,
    CallOptions,
    ErrorPart,
    Finish,
    GenerateResult,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    check_grammar,
    collect,
    to_json,
)

_PATIENCE_S = 3.0  # less than what a stream allows a close that hangs


def _require(condition: bool, advice: str) -> None:
    # Not `assert`, which `python -O` leaves out: a check that checks nothing would pass.
    if not condition:
        raise AssertionError(advice)


def check_stream(parts: Iterable[StreamPart]) -> None:
    """Check that a whole list of parts is a well-formed stream (see `neurolink_mw.protocol.grammar`)."""
    try:
        check_grammar(parts)
    except ProtocolError as error:
        raise AssertionError(str(error)) from None


async def check_model(
    model: LanguageModel,
    *,
    options: CallOptions | None = None,
    failing: LanguageModel | None = None,
    interrupted: LanguageModel | None = None,
) -> None:
    """Check that a model keeps the protocol's promises.

    model: answers every call alike, at least eight times. failing: the same adapter against a provider that refuses
    or breaks before the first content. interrupted: against one whose stream is cut after its first content. Give the
    latter two for an adapter; a test double may do without.
    """
    options = options or CallOptions.from_text("Hello")
    _check_names(model)
    before = to_json(options)
    whole = await _generate(model, options)
    parts = await _stream(model, options)
    check_stream(parts)
    _check_agreement(whole, collect(parts))
    _require(
        to_json(options) == before, "the model changed the options it was given: copy them with options.replace(...)"
    )
    await _check_leaving(model, options)
    await _check_two_at_once(model, options, collect(parts))
    if failing is not None:
        await _check_failing(failing, options)
    if interrupted is not None:
        await _check_interrupted(interrupted, options)


def _check_names(model: LanguageModel) -> None:
    for name in ("provider", "model_id"):
        shown = getattr(model, name, None)
        _require(isinstance(shown, str) and shown != "", f"model.{name} is a non-empty string, not {shown!r}")


async def _generate(model: LanguageModel, options: CallOptions) -> GenerateResult:
    result = await model.do_generate(options)
    _require(isinstance(result, GenerateResult), f"do_generate returns a GenerateResult, not {type(result).__name__}")
    return result


async def _stream(model: LanguageModel, options: CallOptions) -> list[StreamPart]:
    async with await _open(model, options) as stream:
        return [part async for part in stream]


async def _open(model: LanguageModel, options: CallOptions) -> PartStream:
    result = await model.do_stream(options)
    _require(isinstance(result, StreamResult), f"do_stream returns a StreamResult, not {type(result).__name__}")
    stream: object = result.stream
    _require(
        isinstance(stream, PartStream),
        f"StreamResult.stream is a PartStream, not {type(stream).__name__}: wrap it as PartStream(source, close=...)",
    )
    return result.stream


def _check_agreement(whole: GenerateResult, streamed: GenerateResult) -> None:
    streamed_said = _said(streamed)
    for kind, said in _said(whole).items():
        _require(said == streamed_said[kind], f"do_generate and do_stream give different {kind} for one request")
    reasons = whole.finish_reason.unified, streamed.finish_reason.unified
    _require(reasons[0] == reasons[1], f"the finish reason is {reasons[0]!r} generated and {reasons[1]!r} streamed")


def _said(result: GenerateResult) -> dict[str, object]:
    calls = [(call.tool_name, call.input) for call in result.tool_calls]
    return {"text": result.text, "reasoning": result.reasoning_text, "tool calls": calls}


async def _check_leaving(model: LanguageModel, options: CallOptions) -> None:
    """A stream may be left before, during and after its first read, and closed twice."""
    for reads in (0, 1, 2):
        stream = await _open(model, options)
        iterator = stream.__aiter__()
        with anyio.move_on_after(_PATIENCE_S) as patience:
            for _ in range(reads):
                await iterator.__anext__()
        started = anyio.current_time()
        await stream.aclose()  # gives up by itself on what hangs
        await stream.aclose()
        _require(not patience.cancelled_caught, "a read of a stream hangs")
        _require(
            anyio.current_time() - started < _PATIENCE_S,
            f"closing a stream after {reads} reads hangs: its close function may wait for nothing but its own source",
        )
        try:
            await stream.__anext__()
        except (anyio.ClosedResourceError, StopAsyncIteration):
            continue
        raise AssertionError("a closed stream still gives parts")


async def _check_two_at_once(model: LanguageModel, options: CallOptions, expected: GenerateResult) -> None:
    first, second = await _open(model, options), await _open(model, options)
    seen: tuple[list[StreamPart], list[StreamPart]] = ([], [])
    async with first, second:
        readers = first.__aiter__(), second.__aiter__()
        open_readers = {0, 1}
        while open_readers:
            for index in sorted(open_readers):
                try:
                    seen[index].append(await readers[index].__anext__())
                except StopAsyncIteration:
                    open_readers.discard(index)
    for parts in seen:
        try:
            check_grammar(parts)
            mixed = _said(collect(parts)) != _said(expected)
        except ProtocolError:
            mixed = True
        _require(not mixed, "two streams at once mix their parts: keep state per call")


async def _check_failing(model: LanguageModel, options: CallOptions) -> None:
    for name in ("do_generate", "do_stream"):
        try:
            answer = await getattr(model, name)(options)
        except ProviderError as error:
            _require(
                bool(error.provider), f"{name} raised a {type(error).__name__} that does not say which provider failed"
            )
        except Exception as error:
            raise AssertionError(
                f"{name} raised {type(error).__name__}: what a provider does wrong is raised as a ProviderError"
            ) from error
        else:
            if isinstance(answer, StreamResult):
                await answer.stream.aclose()
            raise AssertionError(
                f"{name} raised nothing: what fails before the first content is raised from the call, so that a retry "
                f"sees it (read up to the first content, as primed() does)"
            )


async def _check_interrupted(model: LanguageModel, options: CallOptions) -> None:
    parts = await _stream(model, options)
    check_stream(parts)
    _require(any(isinstance(part, ErrorPart) for part in parts), "a cut stream says so in an error part")
    finish = parts[-1]
    _require(
        isinstance(finish, Finish) and finish.finish_reason == INTERRUPTED,
        "a cut stream ends with finish reason 'error', raw 'interrupted': never with a quiet stop",
    )
