"""Native to V3: a message of the API as an answer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from ...protocol import JSON, CallWarning, Content, GenerateResult, Reasoning, RequestInfo, ResponseInfo, Text, ToolCall
from ...structured import AnswerContent, answer_from_content, answer_warnings
from ..common.readings import AnswerIds
from .citations import SourceReader
from .errors import ErrorReader
from .readings import (
    Told,
    citations_metadata,
    cuts,
    finish_reason,
    foreign,
    head_of,
    provider_metadata,
    redaction,
    signed,
    usage,
)
from .request import DEFAULT_PROVIDER, Expected
from .server_tools import ToolReader, is_call, is_result


def parse_response(
    native: object,
    *,
    provider: str = DEFAULT_PROVIDER,
    model_id: str | None = None,
    warnings: Sequence[CallWarning] = (),
    request_body: Mapping[str, object] | None = None,
    errors: ErrorReader | None = None,
    expected: Expected | None = None,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> GenerateResult:
    """The answer that a message of the API holds.

    provider: the name in errors; metadata is filed under `anthropic`. warnings, request_body: from `build_request`.
    expected: from `expected_of`. status, headers: of the HTTP answer. errors: makes the errors, where secrets must be
    kept out of them.

    Raises ProviderError, or what an error object in place of a message stands for, when this is no whole answer: not an
    object, no content list, a block that is no object, a call that names no tool.
    """
    errors, expected = errors or ErrorReader(provider, model_id), expected or Expected()
    try:
        return _result(native, model_id, warnings, request_body, errors, expected, status, headers)
    except RecursionError:
        pass
    raise errors.malformed("the answer is nested too deeply", None, status=status, headers=headers)


def _result(
    native: object,
    model_id: str | None,
    warnings: Sequence[CallWarning],
    request_body: Mapping[str, object] | None,
    errors: ErrorReader,
    expected: Expected,
    status: int | None,
    headers: Mapping[str, str] | None,
) -> GenerateResult:
    failure = errors.of_error_in(native, status=status, headers=headers)
    if failure is not None:
        raise failure
    blocks = native.get("content") if isinstance(native, Mapping) else None
    if not isinstance(native, Mapping) or not isinstance(blocks, list | tuple):
        raise errors.malformed("the answer is not a message", native, status=status, headers=headers)
    raw = native.get("stop_reason")
    reader = _BlockReader(expected)
    content: list[Content] = []
    for index, block in enumerate(blocks):
        try:
            content.extend(reader.read(index, block, may_be_cut=cuts(raw) and index == len(blocks) - 1))
        except _Malformed as fault:
            what = f"content[{index}] of the answer {fault}"
            raise errors.malformed(what, native, status=status, headers=headers) from None
    shown = AnswerContent(tuple(content), False)
    if expected.answer is not None:
        shown = answer_from_content(content, expected.answer, whole=not cuts(raw))
    reason = finish_reason(raw, answered=shown.answered)
    by_tool = None if expected.answer is None else shown
    own = answer_warnings(reason, by_tool, unwanted=expected.no_calls and shown.has_calls)
    head = head_of(native, model_id)
    return GenerateResult(
        shown.content,
        reason,
        usage(native.get("usage")),
        (*warnings, *own),
        provider_metadata(Told(native, shown.unexecuted, own)),
        RequestInfo(cast(JSON, request_body)) if request_body is not None else None,
        ResponseInfo(head.id, None, head.model_id, headers, cast(JSON, native)),
    )


class _Malformed(Exception):
    """A block that cannot be read; says why."""


class _BlockReader:
    """Reads the blocks of one message."""

    def __init__(self, expected: Expected) -> None:
        self._answer_name = None if expected.answer is None else expected.answer.name
        self._ids = AnswerIds()
        self._sources = SourceReader(expected.documents)
        self._tools = ToolReader(expected.tool_names, self._ids)

    def read(self, index: int, block: object, *, may_be_cut: bool) -> Iterator[Content]:
        """What a block makes. may_be_cut: it is the last of a message that was cut."""
        if not isinstance(block, Mapping):
            raise _Malformed(f"is of type {type(block).__name__}, not an object")
        kind = block.get("type")
        if kind == "text" and isinstance(text := block.get("text"), str):
            self._ids.take(str(index))  # as a stream does, where a block's index is its id
            yield from self._text(text, block.get("citations"))
        elif kind == "thinking" and isinstance(text := block.get("thinking"), str):
            self._ids.take(str(index))
            yield Reasoning(text, signed(block.get("signature")))
        elif kind == "redacted_thinking" and isinstance(data := block.get("data"), str):
            self._ids.take(str(index))
            yield Reasoning("", redaction(data))
        elif is_call(kind):
            yield self._call(index, block, may_be_cut)
        elif is_result(kind):
            yield self._tools.result(block)
            yield from self._sources.of_result(block)
        else:
            yield foreign(block)

    def _text(self, text: str, citations: object) -> Iterator[Content]:
        cited = list(citations) if isinstance(citations, list | tuple) else []
        yield Text(text, citations_metadata(cited))
        for citation in cited:
            source = self._sources.cited(citation)
            if source is not None:
                yield source

    def _call(self, index: int, block: Mapping[str, object], may_be_cut: bool) -> ToolCall:
        called = self._tools.call(block)
        if called is None:
            raise _Malformed("is a tool use that names no tool")
        if called.name == self._answer_name and not called.of_server:
            self._answer_name = None
            self._ids.take(str(index))  # of its text
        text = called.input_text(block.get("input"))
        return called.call(text or ("" if may_be_cut else called.no_input()))
