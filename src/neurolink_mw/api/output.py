"""Typed output: what is asked of the model, and how its text becomes a value again."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import pydantic_core

from ..errors import SchemaValidationError
from ..protocol import FinishReason, ResponseFormat
from ..structured import OutputSchema, SchemaChecker, coerce_json, unwrap_root, wrap_root

T = TypeVar("T")


class Output(Generic[T]):
    """One form of an answer. format: what the model is asked for; a root that is no object is under one key."""

    def __init__(self, spec: Any) -> None:
        self._schema: OutputSchema[T] = OutputSchema.of(spec)
        wrapped = wrap_root(self._schema.schema)
        self._key = wrapped.key
        self.format = ResponseFormat("json", wrapped.schema, self._schema.name)

    @cached_property
    def _checker(self) -> SchemaChecker:
        return SchemaChecker(self.format.schema or {})

    @cached_property
    def _bare_checker(self) -> SchemaChecker:
        return SchemaChecker(self._schema.schema)

    def read(self, text: str, reason: FinishReason) -> T:
        """The value in a text. SchemaValidationError with what is wrong.

        A text that is not the JSON itself is searched for JSON that fits: in a code fence, between words, with loose
        ends. One that breaks off is not completed.
        """
        if reason.unified not in ("stop", "tool-calls", "other"):
            problem = f"the answer is not whole: it ended with {reason.unified!r}"
            raise SchemaValidationError(problem, problems=(problem,), text=text)
        try:
            return self._parsed(text)
        except SchemaValidationError:
            with suppress(SchemaValidationError):  # the first is told
                return self._found(text)
            raise

    def _found(self, text: str) -> T:
        """The value of JSON that stands in a text, under the key or, where the model has put it under none, bare."""
        found = coerce_json(text, self._checker)
        if found.fits and not found.truncated:
            return self._parsed(found.text)
        if self._key is not None:
            bare = coerce_json(text, self._bare_checker)
            if bare.fits and not bare.truncated:
                return self._schema.parse(_as_value(bare.value))
        raise SchemaValidationError("no JSON that fits", problems=found.problems)

    def _parsed(self, text: str) -> T:
        if self._key is None:
            return self._schema.parse(text)
        try:
            value = pydantic_core.from_json(text, allow_inf_nan=False)
        except ValueError:
            return self._schema.parse(text)  # which says what is wrong with it
        try:
            return self._schema.parse(_as_value(unwrap_root(value, self._key)))
        except SchemaValidationError as error:
            raise SchemaValidationError(str(error), problems=error.problems, text=text) from None


def _as_value(value: object) -> Any:
    """A text that is the value itself, and not its JSON."""
    return cast(Any, pydantic_core.to_json(value)) if isinstance(value, str) else value
