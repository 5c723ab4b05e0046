"""What a checker found, in sentences that a model can act on. None of them quotes the value itself.

The words of jsonschema-rs do quote it, so its errors are told anew from their kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import getitem
from typing import Any, TypeAlias, cast

from jsonschema_rs import ValidationError, ValidationErrorKind

from .places import listed, place, quoted

Schema: TypeAlias = dict[str, object] | bool

_MOST_FORMS = 4


def problems_in(errors: Iterable[ValidationError], schema: Schema, value: Any, root: str, most: int) -> tuple[str, ...]:
    """The first `most` problems, each once: two branches of a schema may object to the same thing."""
    found: dict[str, None] = {}
    for error in errors:
        for narrowed in _narrowed(error):
            found.setdefault(sentence(narrowed, schema, value, root))
            if len(found) == most:
                return tuple(found)
    return tuple(found)


def places_in(errors: Iterable[ValidationError], value: Any, most: int) -> tuple[tuple[str | int, ...], ...]:
    """Where the first `most` errors are, each place once; of an error in all forms of several, also where that within
    the one that was meant is."""
    found: dict[tuple[str | int, ...], None] = {}
    for error in errors:
        for one in (error, *_narrowed(error)):
            found.setdefault(tuple(_steps(value, one.instance_path)))
        if len(found) >= most:
            break
    return tuple(found)[:most]


def sentence(error: ValidationError, schema: Schema, value: Any, root: str) -> str:
    """One problem: the place, and what is allowed there."""
    return f"{place(root, _steps(value, error.instance_path))}: {_words(error, schema)}"


def _steps(value: Any, path: Iterable[str | int]) -> Iterator[str | int]:
    """The path in a value, with its keys as they are: jsonschema-rs reports a key such as "007" as the number 7."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, int):
            step = next((key for key in (str(step), *value) if key in value and _spells(key, step)), str(step))
        yield step
        value = value[step] if not isinstance(value, dict) else value.get(str(step))


def _spells(key: str, number: int) -> bool:
    return re.fullmatch(rf"\+?0*{number}", key) is not None


def _narrowed(error: ValidationError) -> Sequence[ValidationError]:
    """What is wrong within the one form that was meant, where that is clear; else the error itself."""
    while isinstance(error.kind, ValidationErrorKind.AnyOf | ValidationErrorKind.OneOfNotValid):
        forms = _meant(error, error.kind.context)
        if len(forms) != 1:
            return [error]
        if len(forms[0]) != 1:
            return forms[0]
        error = forms[0][0]
    return [error]


def _meant(error: ValidationError, forms: Sequence[Sequence[ValidationError]]) -> Sequence[Sequence[ValidationError]]:
    """The forms that a value was not plainly too different for.

    A form of another type was not meant when there is one of the value's type; nor one of another constant, as in a
    union that is told apart by its `kind`, when there is one whose constants fit.
    """

    def is_of_another_type(one: ValidationError) -> bool:
        return isinstance(one.kind, ValidationErrorKind.Type) and one.instance_path == error.instance_path

    for is_telling in (is_of_another_type, _is_constant):
        forms = [form for form in forms if not any(map(is_telling, form))] or forms
    return forms


def _is_constant(error: ValidationError) -> bool:
    return isinstance(error.kind, ValidationErrorKind.Constant | ValidationErrorKind.Enum)


def _words(error: ValidationError, schema: Schema) -> str:
    kind = ValidationErrorKind
    match error.kind:
        case kind.Type(types=types):
            return f"must be {_a_type(types)}, not {_type_of(error.instance)}"
        case kind.Required(property=name):
            return f"lacks the required key {quoted(name)}"
        case kind.AdditionalProperties(unexpected=names) | kind.UnevaluatedProperties(unexpected=names):
            return f"has keys that are not allowed: {listed(names)}{_allowed(error, schema)}"
        case kind.Enum(options=options):
            return f"must be one of {listed(options)}"
        case kind.Constant(expected_value=expected):
            return f"must be {quoted(expected)}"
        case kind.Minimum(limit=limit):
            return f"must be at least {limit}"
        case kind.Maximum(limit=limit):
            return f"must be at most {limit}"
        case kind.ExclusiveMinimum(limit=limit):
            return f"must be more than {limit}"
        case kind.ExclusiveMaximum(limit=limit):
            return f"must be less than {limit}"
        case kind.MultipleOf(multiple_of=step):
            return f"must be a multiple of {step}"
        case kind.MinLength(limit=limit):
            return f"must have at least {_count(limit, 'character')}"
        case kind.MaxLength(limit=limit):
            return f"must have at most {_count(limit, 'character')}"
        case kind.Pattern(pattern=pattern):
            return f"must match the pattern {quoted(pattern)}"
        case kind.Format(format=name):  # met in broken schemas alone, as in a pattern that does not compile
            return f"must be a valid {name}"
        case kind.BacktrackLimitExceeded():
            return "is too intricate for the pattern that it must match"
        case kind.ContentEncoding(content_encoding=encoding):
            return f"must be text in {encoding}"
        case kind.ContentMediaType(content_media_type=media_type):
            return f"must hold {media_type}"
        case kind.MinItems(limit=limit):
            return f"must have at least {_count(limit, 'item')}"
        case kind.MaxItems(limit=limit) | kind.AdditionalItems(limit=limit):
            return f"must have at most {_count(limit, 'item')}"
        case kind.UnevaluatedItems(unexpected=items):
            return (
                "has 1 item that is not allowed" if len(items) == 1 else f"has {len(items)} items that are not allowed"
            )
        case kind.UniqueItems():
            return "must not have the same item twice"
        case kind.Contains():
            return "has too few or too many items of the kind that it must contain"
        case kind.MinProperties(limit=limit):
            return f"must have at least {_count(limit, 'key')}"
        case kind.MaxProperties(limit=limit):
            return f"must have at most {_count(limit, 'key')}"
        case kind.PropertyNames(error=inner):
            return f"has the key {quoted(inner.instance, 60)}, which {_words(inner, schema)}"
        case kind.AnyOf(context=forms) | kind.OneOfNotValid(context=forms):
            return _forms(error, forms, schema)
        case kind.OneOfMultipleValid():
            return "must fit exactly one of its forms, and fits more than one"
        case kind.Not(schema=refused):
            return f"must not fit {quoted(refused)}"
        case kind.FalseSchema():
            none = error.schema_path[-1:] in (["additionalProperties"], ["propertyNames"])
            return "must have no keys" if none else "is not allowed"
    return f"does not fit {place('the schema at it', error.schema_path)}"


def _forms(error: ValidationError, forms: Sequence[Sequence[ValidationError]], schema: Schema) -> str:
    said: dict[str, None] = {}
    for form in _meant(error, forms):
        telling = next((one for one in form if _is_constant(one)), form[0])  # what tells the forms of a union apart
        first = next(iter(_narrowed(telling)))
        inner = first.instance_path[len(error.instance_path) :]
        words = _words(first, schema)
        said.setdefault(f"{place('', inner).removeprefix('.')} {words}" if inner else words)
    shown = [*said][:_MOST_FORMS]
    more = f"; or one of {len(said) - len(shown)} more" if len(said) > len(shown) else ""
    return f"fits none of its {len(forms)} forms: {'; or '.join(shown)}{more}"


def _allowed(error: ValidationError, schema: Schema) -> str:
    """The keys that are allowed, where the schema beside the keyword names them all."""
    try:
        at: Any = reduce(getitem, error.schema_path[:-1], cast(Any, schema))
    except (KeyError, IndexError, TypeError):  # a schema with an `$id` of its own counts from there
        return ""
    properties = at.get("properties") if isinstance(at, dict) and "patternProperties" not in at else None
    if not isinstance(properties, dict) or not properties:
        return ""
    return f"; allowed are {listed([*properties])}"


def _a_type(types: Sequence[str]) -> str:
    return " or ".join(_ARTICLES.get(name, name) for name in types)


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    for cls, name in _TYPES:
        if isinstance(value, cls):
            return _ARTICLES[name]
    return _ARTICLES["number"]


_TYPES: Sequence[tuple[type, str]] = (
    (bool, "boolean"),
    (str, "string"),
    (int, "integer"),
    (dict, "object"),
    (list, "array"),
)

_ARTICLES = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


def _count(number: int, of: str) -> str:
    return f"{number} {of}" if number == 1 else f"{number} {of}s"
