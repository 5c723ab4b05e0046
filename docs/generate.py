"""Write `config-reference.md` from the code: `python docs/generate.py`, or `--check` whether it is up to date."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from neurolink_mw.config import PRESETS, MemberConfig, PipelineConfig, WhenConfig
from neurolink_mw.plugins import Registry, load_plugins

PAGE = Path(__file__).with_name("config-reference.md")

HEAD = """# Configuration

*Generated from the code by `docs/generate.py`.*

A pipeline is described in a file that ends in `.toml`, `.yaml`, `.yml` (with the extra `yaml`) or `.json`, or in a
mapping of the same shape. `neurolink-mw schema` prints its JSON Schema, with the options of installed plugins.

- An unknown option is an error, at every level. Every fault is reported with its place.
- `${ENV:NAME}` anywhere in a text stands for an environment variable; `$${ENV:NAME}` stands for itself.
- Layers: defaults (the preset), then the file, then `overrides` in code, then the overrides of one call. Mappings are
  merged at every depth, middlewares by id, other lists are replaced.
- Short forms: a model as `"provider:model-id"`, a middleware as its id alone.
"""


def render(registry: Registry) -> str:
    sections = [HEAD, _section("The file", PipelineConfig), _section("`middlewares[]`", MemberConfig)]
    sections.append(_section("`middlewares[].when`", WhenConfig))
    rows = [f"| `{name}` | {preset.about} {_ids(preset.middlewares)} |" for name, preset in sorted(PRESETS.items())]
    sections.append("\n".join(["## Presets\n", "| preset | |", "|---|---|", *rows]) + "\n")
    sections.append("## Middlewares\n")
    for id in registry.middleware_ids:
        cls = registry.middleware(id)
        about = " ".join((cls.__doc__ or "").split())
        options = " ".join((cls.Config.__doc__ or "").split())
        sections.append(f"### `{id}`\n\nStage {int(cls.stage)}. {about}\n\n{options}\n\n{_table(cls.Config)}")
    return "\n".join(sections)


def _ids(members: tuple[dict[str, Any], ...]) -> str:
    return "(" + ", ".join(f"`{member['id']}`" for member in members) + ")"


def _section(title: str, model: Any) -> str:
    about = " ".join((model.__doc__ or "").split())
    return f"## {title}\n\n{about}\n\n{_table(model)}"


def _table(model: Any) -> str:
    schema = model.model_json_schema()
    rows = ["| option | type | default | |", "|---|---|---|---|"]
    for name, prop in schema.get("properties", {}).items():
        default = "required" if name in schema.get("required", ()) else _default(prop)
        rows.append(f"| `{name}` | {_type(prop)} | {default} | {prop.get('description', '')} |")
    note = " ".join((schema.get("description") or "").split())
    return (
        (f"{note}\n\n" if note and note not in " ".join((model.__doc__ or "").split()) else "") + "\n".join(rows) + "\n"
    )


def _default(prop: dict[str, Any]) -> str:
    if "default" not in prop or prop["default"] in (None, [], {}):
        return "-"
    default = prop["default"]
    return f"`{default if isinstance(default, str) and default.isprintable() else json.dumps(default)}`"


def _type(prop: dict[str, Any]) -> str:
    if "anyOf" in prop:
        return " or ".join(_type(one) for one in prop["anyOf"] if one.get("type") != "null")
    if "$ref" in prop:
        return str(prop["$ref"].rsplit("/", 1)[-1])
    if "enum" in prop:
        return ", ".join(f"`{value}`" for value in prop["enum"])
    if prop.get("type") == "array":
        return f"list of {_type(prop.get('items', {}))}"
    return str(prop.get("type", "any")).replace("object", "mapping")


def main() -> int:
    page = render(_own_registry())
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") != page:
            print("docs/config-reference.md is out of date: run python docs/generate.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(page, encoding="utf-8")
    return 0


def _own_registry() -> Registry:
    """The library's own plugin and no other, so that the page does not depend on what is installed."""
    return load_plugins(environ={"NEUROLINK_MW_PLUGINS": ""})


if __name__ == "__main__":
    sys.exit(main())
