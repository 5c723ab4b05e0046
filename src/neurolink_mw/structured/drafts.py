"""Which draft of JSON Schema a schema is written in, by its `$schema`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ..errors import ConfigError

Draft: TypeAlias = Literal["draft-04", "draft-06", "draft-07", "2019-09", "2020-12"]

DEFAULT: Draft = "draft-07"
"""What a schema that does not say is read as, as the protocol has it for tools and response formats."""

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


def draft_of(schema: Mapping[str, object], where: str = "schema") -> Draft:
    """The draft of a schema. ConfigError at `where` for one that is not known here, such as draft 3 or one's own."""
    if "$schema" not in schema:
        return DEFAULT
    address = schema["$schema"]
    if isinstance(address, str):
        draft = _BY_ADDRESS.get(address.removesuffix("#").removeprefix("http://").removeprefix("https://"))
        if draft is not None:
            return draft
    said = repr(address[:100]) if isinstance(address, str) else type(address).__name__
    known = ", ".join(sorted(set(_BY_ADDRESS.values())))
    raise ConfigError(f"{where}.$schema: {said} is no draft that is known here. Known are {known}")
