"""Random values of every protocol type, made from the types' own annotations."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Union, get_args, get_origin

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from neurolink_mw import protocol
from neurolink_mw.protocol import (
    CallOptions,
    File,
    FinishReason,
    GenerateResult,
    Reasoning,
    Source,
    StreamPart,
    StreamResult,
    Text,
    ToolApprovalRequest,
    ToolCall,
    ToolResult,
    UnknownPart,
    Url,
    Value,
    parts_of,
)

quick = settings(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# For what holds for a type or does not, whatever its values.
few = settings(quick, max_examples=4)

RUN_TIME_ONLY = {Value, StreamResult}
TYPES: list[type[Value]] = [
    member
    for name in protocol.__all__
    if isinstance(member := getattr(protocol, name), type) and issubclass(member, Value) and member not in RUN_TIME_ONLY
]

texts = st.text(max_size=8)
labels = st.text("abcdefgh-", min_size=1, max_size=8)
json_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
json_values: st.SearchStrategy[Any] = st.recursive(
    json_scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=4
)
json_objects = st.dictionaries(texts, json_values, max_size=2)
# No field of ours begins with "x", and a later version's fields look like any others.
unknown_fields = st.dictionaries(labels.map("x{}".format), json_values, min_size=1, max_size=2)
addresses = labels.map("https://example.com/{}".format).map(Url)
moments = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))

unknown_parts = st.builds(UnknownPart, labels.map("vendor.{}".format), unknown_fields)

_SCALARS: dict[object, st.SearchStrategy[Any]] = {
    object: json_values,
    str: texts,
    int: st.integers(0, 10**6),
    float: st.floats(0, 1) | st.integers(0, 1),
    bool: st.booleans(),
    bytes: st.binary(max_size=8),
    Url: addresses,
    datetime: moments,
    type(None): st.none(),
}


def strategy_for(wanted: Any) -> st.SearchStrategy[Any]:
    origin, args = get_origin(wanted), get_args(wanted)
    if wanted in _SCALARS:
        return _SCALARS[wanted]
    if origin is Union or origin is types.UnionType:
        return st.one_of([strategy_for(member) for member in args])
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple or origin is Sequence:
        return st.lists(strategy_for(args[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(texts, strategy_for(args[1]), max_size=2)
    return values_of(wanted)


_made: dict[type, st.SearchStrategy[Any]] = {UnknownPart: unknown_parts}


def values_of(cls: type[Value]) -> st.SearchStrategy[Any]:
    """Values of one type, with every optional field sometimes set and sometimes not."""
    if (known := _made.get(cls)) is not None:
        return known
    hints = typing.get_type_hints(cls)
    fields = {
        f.name: st.none() | unknown_fields if f.name == "extra" else strategy_for(hints[f.name])
        for f in dataclasses.fields(cls)  # type: ignore[arg-type]  # @value makes dataclasses
        if f.name != "context"
    }
    made = _made[cls] = st.builds(cls, **fields)
    return made


reasons = st.sampled_from(["stop", "length", "content-filter", "tool-calls", "error", "other", "interrupted"])


@st.composite
def results(draw: st.DrawFn) -> GenerateResult:
    """Whole answers as a model may give them: one tool call of an id, no result that another one replaces."""
    content = draw(
        st.lists(
            st.one_of(
                *(values_of(kind) for kind in (Text, Reasoning, File, ToolCall, ToolApprovalRequest, Source)),
                values_of(ToolResult).map(lambda one: one.replace(preliminary=None)),
                unknown_parts,
            ),
            max_size=5,
        )
    )
    ids = draw(st.permutations([*map(str, range(len(content)))]))  # such as the ids of blocks
    content = [
        part.replace(tool_call_id=id) if isinstance(part, ToolCall) else part
        for part, id in zip(content, ids, strict=True)
    ]
    return GenerateResult(
        content,
        FinishReason(draw(reasons), draw(st.none() | texts)),
        draw(values_of(protocol.Usage)),
        draw(st.lists(values_of(protocol.CallWarning), max_size=2)),
        draw(st.none() | json_objects),
        response=draw(st.none() | st.builds(protocol.ResponseInfo, texts, moments, texts, extra=unknown_fields)),
        extra=draw(st.none() | unknown_fields),
    )


streams: st.SearchStrategy[list[StreamPart]] = results().map(lambda result: list(parts_of(result)))
options_: st.SearchStrategy[CallOptions] = values_of(CallOptions)
