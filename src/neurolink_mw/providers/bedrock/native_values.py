"""JSON values on their way into and out of a native request. Pure.

botocore takes plain dicts and lists only, and bytes where the service has blobs. What is kept in provider options and
metadata is JSON, so a native block that waits there has its bytes written as `{"$bytes": base64}`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final, TypeAlias

from ...protocol import JSON

Block: TypeAlias = dict[str, object]
"""A native content block: its kind to its body. Bytes are bytes in it."""

_BYTES: Final = "$bytes"
_PLAIN: Final = "$json"  # a mapping of the caller's own that looks like one of these two


def stored(native: object) -> JSON:
    """A native value as JSON that `restored` turns back into the same value. TypeError for what has no JSON form."""
    if isinstance(native, Mapping):
        kept = {str(key): stored(item) for key, item in native.items()}
        return {_PLAIN: kept} if len(kept) == 1 and (_BYTES in kept or _PLAIN in kept) else kept
    if isinstance(native, list | tuple):
        return [stored(item) for item in native]
    if isinstance(native, bytes | bytearray):
        return {_BYTES: base64.b64encode(native).decode("ascii")}
    if native is None or isinstance(native, bool | int | float | str):
        return native
    raise TypeError(f"{type(native).__name__} has no JSON form")


def restored(kept: object) -> object:
    """The native value that `stored` kept. Bytes that stand there as they are stay."""
    if isinstance(kept, Mapping):
        if len(kept) == 1:
            if isinstance(data := kept.get(_BYTES), str):
                return decoded(data)
            if isinstance(inner := kept.get(_PLAIN), Mapping):
                return {str(key): restored(item) for key, item in inner.items()}
        return {str(key): restored(item) for key, item in kept.items()}
    if isinstance(kept, list | tuple):
        return [restored(item) for item in kept]
    return kept


def decoded(data: str) -> bytes:
    """Base64 as bytes, its padding present or not. Raises ValueError where it is not base64."""
    try:
        return base64.b64decode(data.rstrip("=") + "=" * (-len(data.rstrip("=")) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
