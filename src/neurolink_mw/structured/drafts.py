"""Which draft of JSON Schema a schema is written in, by its `$schema`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ..errors import ConfigError
from .keywords import Node, subschemas

Draft: TypeAlias = Literal["draft-04", "draft-06", "draft-07", "2019-09", "2020-12"]

DEFAULT: Draft = "draft-07"
"""What a schema that does not say is read as, as the protocol has it for tools and response formats; save one with
`$defs`, which only later drafts have."""

BEFORE_2019: frozenset[Draft] = frozenset({"draft-04", "draft-06", "draft-07"})
"""Here nothing beside a `$ref` has any effect."""

_BY_ADDRESS: dict[str, Draft] = {
    "json-schema.org/draft-04/schema": "draft-04",
    "json-schema.org/draft-06/schema": "draft-06",
    "json-schema.org/draft-07/schema": "draft-07",
    "json-schema.org/draft/2019-09/schema": "2019-09",
    "json-schema.org/draft/2020-12/schema": "2020-12",
    "json-schema.org/schema": "2020-12",  # "the latest"
}

ADDRESSES: dict[Draft, str] = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def draft_of(schema: Mapping[str, object], where: str = "schema") -> Draft:
    """The draft of a schema. ConfigError at `where` for one that is not known here, such as draft 3 or one's own."""
    if "$schema" not in schema:
        return _by_keywords(dict(schema))
    address = schema["$schema"]
    if isinstance(address, str):
        draft = _BY_ADDRESS.get(address.removesuffix("#").removeprefix("http://").removeprefix("https://"))
        if draft is not None:
            return draft
    said = repr(address[:100]) if isinstance(address, str) else type(address).__name__
    known = ", ".join(sorted(set(_BY_ADDRESS.values())))
    raise ConfigError(f"{where}.$schema: {said} is no draft that is known here. Known are {known}")


def _by_keywords(root: Node) -> Draft:
    has_defs, has_lists = False, False
    pending = [root]
    while pending:
        node = pending.pop()
        has_defs |= "$defs" in node
        has_lists |= isinstance(node.get("items"), list)
        pending += [below for _, below in subschemas(node)]
    if not has_defs:
        return DEFAULT
    return "2019-09" if has_lists else "2020-12"  # the one draft that has both, and the latest
