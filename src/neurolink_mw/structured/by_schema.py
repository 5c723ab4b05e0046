"""What is made of a schema, made once: a turn asks for the same answer at each of its steps."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

from ..protocol import JSONObject
from ..protocol.tokens import json_text

T = TypeVar("T")
Schema = JSONObject | bool

_MOST: Final = 64
_LONGEST: Final = 100_000  # characters of a schema that is worth its place


def by_schema(fn: Callable[[Schema], T]) -> Callable[[Schema], T]:
    """The function with what it made of the last 64 schemas. Each call gets a copy of its own."""

    @lru_cache(maxsize=_MOST)
    def of_text(text: str) -> T:
        return fn(json.loads(text))

    @wraps(fn)
    def once(schema: Schema) -> T:
        try:
            text = json_text(schema)
        except (TypeError, ValueError, RecursionError):
            return fn(schema)  # which says what is wrong with it
        return copy.deepcopy(of_text(text)) if len(text) <= _LONGEST else fn(schema)

    return once
