"""The JSON Schema of a pydantic model, as a tool's input is described by it."""

from __future__ import annotations

from pydantic import BaseModel, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from ..errors import ConfigError
from ..protocol import JSONObject
from ..structured import inline_refs

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class _Lean(GenerateJsonSchema):
    """Without a title for every field, which says its name again and costs tokens at every step. A default that JSON
    cannot carry, such as a sentinel, is not told."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def schema_of(model: type[BaseModel], where: str) -> JSONObject:
    """The schema, in itself complete. where: what it is to its author. ConfigError where the model has none."""
    try:
        schema = model.model_json_schema(schema_generator=_Lean)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise ConfigError(f"{where}: {model.__name__} has no JSON Schema: {first_line(error)}") from None
    schema.pop("title", None)
    return inline_refs({"$schema": _DRAFT, **schema}).schema


def takes_objects(schema: JSONObject) -> bool:
    """Whether an object may fit it, as far as its root says."""
    kinds = schema.get("type", "object")
    return "object" in kinds if isinstance(kinds, list | tuple) else kinds == "object"


def first_line(error: Exception) -> str:
    """What pydantic says, without its advice and links."""
    return str(error).partition("\n")[0]
