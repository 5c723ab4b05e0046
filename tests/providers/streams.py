"""What the tests of every provider read off the parts of a stream."""

from __future__ import annotations

from neurolink_mw.errors import ProviderError
from neurolink_mw.protocol import CallOptions, ErrorPart, Finish, LanguageModel, StreamPart, check_grammar


async def read(one: LanguageModel, options: CallOptions) -> list[StreamPart]:
    parts = [part async for part in (await one.do_stream(options)).stream]
    check_grammar(parts)
    return parts


def last(parts: list[StreamPart]) -> Finish:
    part = parts[-1]
    assert isinstance(part, Finish)
    return part


def finish(parts: list[StreamPart]) -> tuple[str, str | None]:
    reason = last(parts).finish_reason
    return reason.unified, reason.raw


def errors(parts: list[StreamPart]) -> list[ProviderError]:
    found = [part.error for part in parts if isinstance(part, ErrorPart)]
    assert all(isinstance(error, ProviderError) for error in found)
    return found  # type: ignore[return-value]  # as asserted
