"""Checking JSON values against a JSON Schema: compiled once, then asked for what is wrong with a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..errors import ConfigError
from ..protocol import JSON, JSONObject
from .drafts import DEFAULT, Draft, draft_of
from .places import place
from .plain import NotJson, plain, plain_schema

if TYPE_CHECKING:
    from jsonschema_rs import Validator

MOST_PROBLEMS = 10
"""A value that is wrong all over is told so often; the rest shows when these are mended."""

MOST_MISFITS = 200


class SchemaChecker:
    """A compiled JSON Schema.

    `$schema` says which draft it is: 4, 6, 7, 2019-09 or 2020-12; without it, it is read as draft 7, or one with
    `$defs` as 2020-12 (2019-09, where `items` is a list). `format` is an annotation in every draft and refuses
    nothing. Nothing is ever fetched: what a `$ref` names must be in the schema.

    schema: a mapping, or a bool. where: what the schema is to its author, such as "Tool 'weather': input_schema".
    ConfigError for a schema that is broken, naming the place in it, and for a `$ref` that leads out of it.
    """

    __slots__ = ("_schema", "_validator")

    def __init__(self, schema: JSONObject | bool, *, where: str = "schema") -> None:
        self._schema = plain_schema(schema, where)
        self._validator = _compiled(self._schema, where)

    @property
    def schema(self) -> JSONObject | bool:
        """The checker's own copy of the schema, which is not to be changed."""
        return cast("JSONObject | bool", self._schema)

    def problems(self, value: object, *, root: str = "value") -> tuple[str, ...]:
        """What is wrong with a value, at most ten sentences in the value's own order; none when it is valid.

        Each names its place, beginning with `root`, and what is allowed there: `input.city: must be a string, not an
        integer`. They say nothing of the value but its types and the names of its keys, so they can go to a model
        and into a log. What is no JSON at all (NaN, a key that is no text, 200 levels) is a problem too.
        """
        from .problems import problems_in  # it needs jsonschema_rs, as does the line after it

        try:
            known = plain(value)
        except NotJson as error:
            return (f"{place(root, error.path)}: {error.words}",)
        if self._validator.is_valid(known):
            return ()
        return problems_in(self._validator.iter_errors(known), self._schema, known, root, MOST_PROBLEMS)

    def misfits(self, value: JSON, most: int = MOST_MISFITS) -> tuple[tuple[str | int, ...], ...]:
        """The places of the first `most` faults of a value that is JSON, each once; those within the one form that was
        meant among them, where there are several."""
        from .problems import places_in

        return places_in(self._validator.iter_errors(value), value, most)


def _compiled(schema: dict[str, object] | bool, where: str) -> Validator:
    import jsonschema_rs  # takes longer to import than this whole room

    from .problems import sentence

    draft = DEFAULT if isinstance(schema, bool) else draft_of(schema, where)
    classes: dict[Draft, type[Validator]] = {
        "draft-04": jsonschema_rs.Draft4Validator,
        "draft-06": jsonschema_rs.Draft6Validator,
        "draft-07": jsonschema_rs.Draft7Validator,
        "2019-09": jsonschema_rs.Draft201909Validator,
        "2020-12": jsonschema_rs.Draft202012Validator,
    }
    try:
        return classes[draft](schema, validate_formats=False, retriever=_refuse)
    except jsonschema_rs.ValidationError as error:
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
            what = str(error.kind.error).partition(" is not present in a registry")[0]
            remedy = "Nothing is fetched: put what it names under $defs and point there"
            raise ConfigError(f"{where}: a $ref leads out of the schema, or nowhere: {what}. {remedy}") from None
        raise ConfigError(sentence(error, schema, schema, where)) from None
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def _refuse(uri: str) -> bool:
    raise LookupError(f"{uri} is not part of this schema")
