"""JSON values on their way into a native request. Pure."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Final

import orjson

from .error_maker import ErrorMaker

DEPTH: Final = 200
"""How many levels a JSON value may have. SDKs, and the services' own parsers, recurse."""


def plain(data: object, place: str, errors: ErrorMaker, depth: int = 0) -> object:
    """A JSON value as plain dicts and lists. Bytes become base64, as everywhere where JSON is due.

    Raises InvalidRequestError that names the place for what has no JSON form, a number that is not finite included, and
    for what is nested more than 200 levels deep.
    """
    if depth > DEPTH:
        raise errors.refused(f"{place}: is nested more than {DEPTH} levels deep")
    if data is None or isinstance(data, bool | int):
        return data
    if isinstance(data, str):
        return str.__str__(data)
    if isinstance(data, Mapping):
        return {str(key): plain(item, place, errors, depth + 1) for key, item in data.items()}
    if isinstance(data, list | tuple):
        return [plain(item, place, errors, depth + 1) for item in data]
    if isinstance(data, float) and math.isfinite(data):
        return data
    if isinstance(data, bytes):
        return base64.b64encode(data).decode("ascii")
    raise errors.refused(f"{place}: holds a value that has no JSON form")


def json_text(data: object, place: str, errors: ErrorMaker) -> str:
    """Compact JSON text. Raises InvalidRequestError that names the place for what has no JSON form."""
    native = plain(data, place, errors)
    try:
        return orjson.dumps(native).decode()
    except TypeError:  # lone surrogates and very large numbers
        return json.dumps(native, separators=(",", ":"))
