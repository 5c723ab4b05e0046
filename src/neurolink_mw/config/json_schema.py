"""The JSON Schema of a configuration, with every installed middleware's own options, for editors and other checkers."""

from __future__ import annotations

from typing import Any

from ..plugins import Registry
from .presets import PRESETS
from .schema import MemberConfig, PipelineConfig

_REFERENCE = {"type": "string", "pattern": r"\$\{ENV:[A-Za-z_][A-Za-z0-9_]*\}"}


def json_schema(registry: Registry) -> dict[str, Any]:
    """A JSON Schema (draft 2020-12) that accepts what `Pipeline.from_config` accepts, short forms included."""
    schema = PipelineConfig.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "neurolink-mw pipeline"
    definitions: dict[str, Any] = schema.setdefault("$defs", {})
    ids = list(registry.middleware_ids)
    members: list[dict[str, Any]] = [{"type": "string", "enum": ids}]
    for id in ids:
        cls = registry.middleware(id)
        own = cls.Config.model_json_schema(ref_template=f"#/$defs/{id}.{{model}}")
        for name, definition in own.pop("$defs", {}).items():
            definitions[f"{id}.{name}"] = _with_references(definition)
        definitions[f"{id}.config"] = _with_references(own)
        member = MemberConfig.model_json_schema(ref_template="#/$defs/{model}")
        member.pop("$defs", None)
        member["properties"]["id"] = {"const": id, "description": _first_line(cls)}
        member["properties"]["config"] = {"$ref": f"#/$defs/{id}.config"}
        definitions[id] = member
        members.append({"$ref": f"#/$defs/{id}"})
    del definitions["MemberConfig"]
    properties = schema["properties"]
    properties["middlewares"]["items"] = {"anyOf": members}
    for name in ("enable", "disable"):
        properties[name]["items"] = {"type": "string", "enum": ids}
    properties["preset"] = {**properties["preset"], "anyOf": [{"enum": sorted(PRESETS)}, {"type": "null"}]}
    named = {"type": "string", "pattern": f"^({'|'.join(registry.provider_names)}):.+"}
    properties["model"]["anyOf"].insert(0, named)
    definitions["ModelConfig"]["properties"]["provider"]["enum"] = list(registry.provider_names)
    return schema


def _with_references(schema: dict[str, Any]) -> dict[str, Any]:
    """Every number or switch may also be a reference to the environment."""
    properties = {
        name: {"anyOf": [prop, _REFERENCE]} if prop.get("type") in ("integer", "number", "boolean") else prop
        for name, prop in schema.get("properties", {}).items()
    }
    return {**schema, "properties": properties} if properties else schema


def _first_line(cls: type) -> str:
    return (cls.__doc__ or cls.__name__).strip().splitlines()[0]
