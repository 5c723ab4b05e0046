"""Native to V3: single blocks of a conversation as parts, where `messages` makes the very same block of them. Pure.

A block that would come back otherwise, in the least member, goes along whole instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ...errors import ProviderError
from ...protocol import (
    ContentOutput,
    ErrorJsonOutput,
    ErrorTextOutput,
    FilePart,
    JsonOutput,
    OutputContent,
    OutputCustom,
    OutputFileData,
    OutputImageData,
    OutputText,
    TextOutput,
    ToolOutput,
    UnknownPart,
    Url,
    Value,
)
from ..common.readings import words
from .errors import ErrorReader
from .media import DocumentNames, file_block, media_type_of
from .native_values import stored
from .options import KEY, part_options

_T = TypeVar("_T", bound=Value)


def foreign_part(block: Mapping[str, object]) -> UnknownPart:
    """A block of a kind that V3 does not have, to be sent back as it is."""
    kind = next(iter(block))
    return UnknownPart("custom", {"kind": f"{KEY}.{kind}", "providerOptions": {KEY: {"block": stored(block)}}})


def with_cache_point(part: _T, point: object) -> _T | None:
    """The part with a cache point after it; None where it has one, or this is none."""
    given = (
        part.data.get("providerOptions") if isinstance(part, UnknownPart) else getattr(part, "provider_options", None)
    )
    options = given if isinstance(given, Mapping) else {}
    own = part_options(options)
    if not isinstance(point, Mapping) or "cachePoint" in own:
        return None
    marked = {**options, KEY: {**own, "cachePoint": stored(point)}}
    if isinstance(part, UnknownPart):
        return part.replace(data={**part.data, "providerOptions": marked})
    return part.replace(provider_options=marked)


def part_of_file(kind: str, block: Mapping[str, object]) -> FilePart | None:
    """A file as a part; None where V3 has no place for something of it."""
    body = block[kind]
    if not isinstance(body, Mapping):
        return None
    source, media_type = body.get("source"), media_type_of(kind, words(body.get("format")) or "")
    if not isinstance(source, Mapping) or len(source) != 1 or media_type is None:
        return None
    own: dict[str, object] = {name: body[name] for name in ("context", "citations") if name in body}
    data: object = source.get("bytes")
    if isinstance(text := source.get("text"), str):
        data, own["source"] = text.encode("utf-8", "surrogatepass"), "text"
    elif isinstance(place := source.get("s3Location"), Mapping) and isinstance(uri := place.get("uri"), str):
        data = Url(uri)
        if "bucketOwner" in place:
            own["bucketOwner"] = place["bucketOwner"]
    if not isinstance(data, bytes | Url):
        return None
    name = words(body.get("name"))
    filename = None if name is None else f"{name}.{body['format']}"
    part = FilePart(media_type, data, filename, {KEY: stored(own)} if own else None)
    try:
        same = file_block(part, "", DocumentNames(), ErrorReader()) == block
    except ProviderError:
        return None
    return part if same else None


def output_of(content: Sequence[Mapping[str, object]], *, failed: bool) -> ToolOutput:
    """The content of a toolResult block: one text or one object is that, everything else a list of pieces."""
    only = content[0] if len(content) == 1 else {}
    if isinstance(text := only.get("text"), str):
        return ErrorTextOutput(text) if failed else TextOutput(text)
    if isinstance(data := only.get("json"), Mapping):
        return ErrorJsonOutput(data) if failed else JsonOutput(data)
    return ContentOutput(tuple(map(_piece, content)))


def _piece(block: Mapping[str, object]) -> OutputContent:
    if isinstance(text := block.get("text"), str):
        return OutputText(text)
    kind = next(iter(block))
    file = part_of_file(kind, block) if kind in ("image", "document") else None
    if file is not None and isinstance(file.data, bytes):
        if kind == "image":
            return OutputImageData(file.data, file.media_type, file.provider_options)
        return OutputFileData(file.data, file.media_type, file.filename, file.provider_options)
    return OutputCustom({KEY: {"block": stored(block)}})
