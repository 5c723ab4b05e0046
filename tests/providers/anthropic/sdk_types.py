"""Checks native requests against the SDK's own typed parameters, to the end.

pydantic reads an `Iterable` of a TypedDict lazily, and takes keys that the type does not have. So the types are walked
here: every member of every object must be known, of its type, and none that is required may be missing.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Union

import typing_extensions
from anthropic.types import message_create_params as stable
from anthropic.types.beta import message_create_params as beta

from neurolink_mw.providers.anthropic.request import BETAS

# The API's own, which the SDK of this generation sends in `extra_body`.
SAMPLING = {"temperature": float, "top_p": float, "top_k": int}
BETA_MEMBERS = frozenset({"betas"})  # a header


def check_request(native: Mapping[str, object]) -> None:
    """That the API's types have all of a request: the stable ones, where it needs no beta."""
    body = dict(native)
    for name, kind in SAMPLING.items():
        if name in body:
            assert not list(_problems(body.pop(name), kind, name))
    betas = body.pop(BETAS, None)
    of_stable = list(_problems(body, _params(stable, body), "body"))
    if betas is None:
        assert not of_stable, of_stable
        return
    assert betas == sorted(set(betas)), betas  # type: ignore[call-overload]  # a list of strings
    of_beta = list(_problems(body, _params(beta, body), "body"))
    assert not of_beta, of_beta


def is_stable(native: Mapping[str, object]) -> bool:
    """Whether the SDK's stable types have all of a request."""
    body = {name: item for name, item in native.items() if name not in {*SAMPLING, BETAS}}
    return not list(_problems(body, _params(stable, body), "body"))


def members(module: types.ModuleType) -> set[str]:
    """The members of a request, as one of the two modules of the SDK has them."""
    return set(_hints(module.MessageCreateParamsNonStreaming)) - BETA_MEMBERS


def _params(module: types.ModuleType, body: Mapping[str, object]) -> Any:
    return module.MessageCreateParamsStreaming if body.get("stream") else module.MessageCreateParamsNonStreaming


@cache
def _hints(typed_dict: Any) -> dict[str, Any]:
    return typing_extensions.get_type_hints(typed_dict)


@cache
def _required(typed_dict: Any) -> frozenset[str]:
    """Its `__required_keys__` do not see what stands in annotations that are strings."""
    hints = typing_extensions.get_type_hints(typed_dict, include_extras=True)
    required: object = typing_extensions.Required
    return frozenset(name for name, hint in hints.items() if typing.get_origin(hint) == required)


def _problems(value: object, kind: Any, path: str) -> Iterator[str]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if typing_extensions.is_typeddict(kind):
        yield from _object_problems(value, kind, path)
    elif origin in (Union, types.UnionType):
        yield from _union_problems(value, arguments, path)
    elif origin is Literal:
        if value not in arguments:
            yield f"{path}: {value!r} is none of {arguments}"
    elif origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            yield f"{path}: no object"
        else:
            for key, item in value.items():
                yield from _problems(item, arguments[1], f"{path}.{key}")
    elif origin is not None and issubclass(origin, Iterable | Sequence):
        if not isinstance(value, list):
            yield f"{path}: no list"
        else:
            for index, item in enumerate(value):
                yield from _problems(item, arguments[0], f"{path}[{index}]")
    elif kind is float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            yield f"{path}: no number"
    elif kind is not object and (type(value) is not kind and kind is not type(None)):
        yield f"{path}: {type(value).__name__} instead of {getattr(kind, '__name__', kind)}"
    elif kind is type(None) and value is not None:
        yield f"{path}: not null"


def _object_problems(value: object, kind: Any, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{path}: no object"
        return
    hints = _hints(kind)
    open_ended = (getattr(kind, "__pydantic_config__", None) or {}).get("extra") == "allow"
    for name in _required(kind) - value.keys():
        yield f"{path}: {name!r} of {kind.__name__} is missing"
    for name, item in value.items():
        if name in hints:
            yield from _problems(item, hints[name], f"{path}.{name}")
        elif not open_ended:
            yield f"{path}: {name!r} is no member of {kind.__name__}"


def _union_problems(value: object, kinds: Sequence[Any], path: str) -> Iterator[str]:
    fewest: list[str] | None = None
    for kind in kinds:
        if isinstance(kind, type) and hasattr(kind, "model_fields"):
            continue  # what an answer is made of: requests are plain JSON here
        found = list(_problems(value, kind, path))
        if not found:
            return
        alike = isinstance(value, Mapping) and typing_extensions.is_typeddict(kind) and _same_type(value, kind)
        if fewest is None or alike:
            fewest = found
    yield from fewest or [f"{path}: of none of the types"]


def _same_type(value: Mapping[str, object], kind: Any) -> bool:
    return value.get("type") in typing.get_args(_hints(kind).get("type"))
