"""The JSON Schema of a configuration, with every installed middleware's own options, for editors and other checkers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from ..plugins import Registry
from .presets import PRESETS
from .schema import SCHEMA_KEY, MemberConfig, PipelineConfig

_REFERENCE = {"type": "string", "pattern": r"\$\{ENV:[^}]+\}"}
_NARROW = ("enum", "const", "pattern", "format", "minLength", "maxLength")
"""What makes a schema refuse some texts."""


def json_schema(registry: Registry) -> dict[str, Any]:
    """A JSON Schema (draft 2020-12) that accepts what `Pipeline.from_config` accepts, short forms included.

    Where a number, a switch or one of some words is wanted, a reference to the environment is accepted too.
    """
    schema: dict[str, Any] = _with_references(PipelineConfig.model_json_schema())
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "neurolink-mw pipeline"
    definitions: dict[str, Any] = schema["$defs"]
    del definitions["MemberConfig"]
    ids = list(registry.middleware_ids)
    members: list[dict[str, Any]] = [{"type": "string", "enum": ids}]
    for id in ids:
        cls = registry.middleware(id)
        own = _own_schema(cls.Config, id)
        for name, definition in own.pop("$defs", {}).items():
            definitions[f"{id}.{name}"] = definition
        definitions[f"{id}.config"] = own
        member = _with_references(MemberConfig.model_json_schema(ref_template="#/$defs/{model}"))
        member.pop("$defs", None)
        member["properties"]["id"] = {"const": id, "description": _first_line(cls)}
        member["properties"]["config"] = {"$ref": f"#/$defs/{id}.config"}
        definitions[id] = member
        members.append({"$ref": f"#/$defs/{id}"})
    providers = list(registry.provider_names)
    named = {"type": "string", "pattern": f"^({'|'.join(map(_literal, providers))}):.+"}
    definitions["ModelConfig"]["properties"]["provider"] = {"anyOf": [{"enum": providers}, _REFERENCE]}
    properties = schema["properties"]
    properties[SCHEMA_KEY] = {"type": "string", "description": "Where this schema is, for the editor."}
    properties["model"]["anyOf"][:0] = [named, _REFERENCE]
    properties["preset"]["anyOf"] = [{"enum": sorted(PRESETS)}, _REFERENCE, {"type": "null"}]
    properties["middlewares"]["items"] = {"anyOf": members}
    for name in ("enable", "disable"):
        properties[name]["items"] = {"anyOf": [{"type": "string", "enum": ids}, _REFERENCE]}
    return schema


def _own_schema(config: type[BaseModel], id: str) -> dict[str, Any]:
    try:
        own = config.model_json_schema(ref_template=f"#/$defs/{id}.{{model}}")
    except (PydanticInvalidForJsonSchema, PydanticUserError):  # an option that no file can give
        names: dict[str, Any] = {field.alias or name: {} for name, field in config.model_fields.items()}
        return {"type": "object", "properties": names, "additionalProperties": False}
    made: dict[str, Any] = _with_references(own)
    return made


def _with_references(schema: Any) -> Any:
    """A schema in which each place that refuses some texts accepts a reference to the environment as well."""
    if isinstance(schema, list):
        return [_with_references(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    out = {
        key: {name: _with_references(item) for name, item in value.items()}
        if key in ("properties", "$defs", "patternProperties")
        else value
        if key in ("default", "enum", "const", "examples")
        else _with_references(value)
        for key, value in schema.items()
    }
    if schema.get("type") in ("integer", "number", "boolean") or any(key in schema for key in _NARROW):
        about = {key: out.pop(key) for key in ("title", "description", "default") if key in out}
        return {**about, "anyOf": [out, _REFERENCE]}
    return out


def _literal(name: str) -> str:
    # Not `re.escape`: a hyphen must not be escaped in the patterns of JSON Schema.
    return re.sub(r"([.*+?^${}()|\[\]\\/])", r"\\\1", name)


def _first_line(cls: type) -> str:
    return (cls.__doc__ or cls.__name__).strip().splitlines()[0]
