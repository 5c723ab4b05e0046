"""What an answer must be: a JSON Schema to send, and a parser for what comes back, from a Python type or a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast, overload

from pydantic import PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import from_json

from ..errors import ConfigError, SchemaValidationError
from ..protocol import JSON, JSONObject
from .check import MOST_PROBLEMS, SchemaChecker
from .inline_refs import inline_refs
from .places import place
from .plain import plain, plain_schema

T = TypeVar("T")
U = TypeVar("U")

_ROOT = "answer"
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME = 64  # as OpenAI's API has it for a response format
_LONGEST_WORDS = 300


class OutputSchema(Generic[T]):
    """The form of an answer. Made by `of`.

    schema: a JSON Schema without `$ref`s where that is possible; its `$schema` is there where it is not to be read as
    draft 7. name: what to call it to a provider: letters, digits, `_` and `-`, 64 at most.
    """

    __slots__ = ("_adapter", "_checker", "name", "schema")

    def __init__(self, name: str, schema: JSONObject, adapter: TypeAdapter[T] | None) -> None:
        self.name = _UNNAMEABLE.sub("_", name)[:_LONGEST_NAME].strip("_") or "output"
        self.schema: JSONObject = inline_refs(schema).schema
        self._checker = SchemaChecker(schema, where=f"the schema of {self.name}")
        self._adapter = adapter

    @overload
    @classmethod
    def of(cls, spec: type[U]) -> OutputSchema[U]: ...
    @overload
    @classmethod
    def of(cls, spec: JSONObject) -> OutputSchema[JSON]: ...
    @overload
    @classmethod
    def of(cls, spec: object) -> OutputSchema[object]: ...

    @classmethod
    def of(cls, spec: object) -> OutputSchema[Any]:
        """From a pydantic model, any other type that pydantic knows (`list[int]`, `int | None`, a `Literal`, a
        TypedDict, a dataclass), or a JSON Schema as a mapping, which is named by its `title`.

        ConfigError for a type that pydantic or JSON Schema has no word for, and for a broken schema.
        """
        if isinstance(spec, Mapping):
            title = spec.get("title")
            return OutputSchema[Any](title if isinstance(title, str) else "", plain_schema(spec), None)
        name = getattr(spec, "__name__", "") if isinstance(spec, type) else ""
        adapter, schema = _from_type(spec)
        return OutputSchema(name, schema, adapter)

    def parse(self, answer: JSON | bytes) -> T:
        """The typed value of an answer. A text (or its bytes) is JSON text always; anything else is a parsed value.

        Nothing is repaired or converted beyond what JSON needs for the type, such as a text for a date.
        SchemaValidationError for what is not JSON or does not fit.
        """
        text = answer if isinstance(answer, str) else None
        value: object = answer
        if isinstance(answer, str | bytes):
            try:
                value = from_json(answer.encode() if isinstance(answer, str) else answer, allow_inf_nan=False)
            except ValueError as error:
                words = "not valid Unicode" if isinstance(error, UnicodeError) else str(error)
                raise _misfit((f"{_ROOT}: is not JSON: {words}",), text) from None
        if problems := self._checker.problems(value, root=_ROOT):
            raise _misfit(problems, text)
        if self._adapter is None:
            return cast(T, plain(value))
        try:
            # From JSON, not from Python values: in a strict model, only there a list may become a tuple.
            return self._adapter.validate_json(json.dumps(plain(value)))
        except ValidationError as error:  # what no schema says, such as a model's own validators
            raise _misfit(_problems_of(error), text) from None


def _from_type(spec: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    if isinstance(spec, str | bytes | bool):
        raise ConfigError(f"an output is a type or a JSON Schema, not a {type(spec).__name__}")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(spec)
        schema = adapter.json_schema()
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise ConfigError(f"an output of {spec!r:.100} has no JSON Schema: {error.message.splitlines()[0]}") from error
    return adapter, {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _problems_of(error: ValidationError) -> tuple[str, ...]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return tuple(f"{place(_ROOT, one['loc'])}: {one['msg'][:_LONGEST_WORDS]}" for one in found[:MOST_PROBLEMS])


def _misfit(problems: tuple[str, ...], text: str | None) -> SchemaValidationError:
    return SchemaValidationError("; ".join(problems), problems=problems, text=text)
