"""V3 to native: what a tool said, as the content of a tool_result block. Pure.

Text and JSON travel as a string, several pieces as blocks: text, images, documents, and in a piece of type `custom`
what the options of `foreign_block` hold, such as a search result or a reference to a tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...protocol import (
    ContentOutput,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExecutionDenied,
    FilePart,
    JsonOutput,
    OutputContent,
    OutputCustom,
    OutputFileData,
    OutputFileId,
    OutputFileUrl,
    OutputImageData,
    OutputImageFileId,
    OutputImageUrl,
    OutputText,
    TextOutput,
    ToolOutput,
    ToolResultPart,
    Url,
)
from ..common.json_values import json_text, plain
from .cache import CacheMarks
from .errors import ErrorReader
from .media import file_block, own_file_id
from .native_values import Block, is_blank, snaked
from .options import KEY, part_options

NOTHING: Final = "(no output)"
"""What stands for the blank output of a tool that failed: the API wants content with `is_error`."""
DENIED: Final = "Tool execution denied."

_TAKEN: Final = frozenset({"browser_state", "document", "image", "search_result", "text", "tool_reference"})
_PIECES: Final = {"search-result": "search_result", "tool-reference": "tool_reference"}
_IMAGE_ENDINGS: Final = frozenset({"gif", "jpeg", "jpg", "png", "webp"})


def result_block(part: ToolResultPart, native_id: str, place: str, marks: CacheMarks, errors: ErrorReader) -> Block:
    """The block that answers a call. Raises InvalidRequestError that names the place for what cannot be sent."""
    native: Block = {"type": "tool_result", "tool_use_id": native_id}
    content = _content(part.output, f"{place}.output", marks, errors)
    failed = isinstance(part.output, ErrorTextOutput | ErrorJsonOutput)
    if content or failed:
        native["content"] = content or NOTHING
    if failed:
        native["is_error"] = True
    own = part_options(part.provider_options)
    if isinstance(toolset := own.get("toolsetName"), str):
        native["toolset_name"] = toolset
    return native


def foreign_block(provider_options: Mapping[str, object] | None, place: str, errors: ErrorReader) -> Block | None:
    """The native block that a part carries: in `block` as it is, or as options of the type `search_result`,
    `tool_reference` and the like. None where it carries none."""
    own = part_options(provider_options)
    kept = own.get("block")
    if isinstance(kept, Mapping) and isinstance(kept.get("type"), str):
        native = plain(kept, place, errors)
        assert isinstance(native, dict)
        return native
    kind = own.get("type")
    kind = _PIECES.get(kind, kind) if isinstance(kind, str) else None
    if kind not in ("search_result", "tool_reference"):
        return None
    options = {name: item for name, item in own.items() if name not in ("cacheControl", "cache_control")}
    native = snaked(plain(options, place, errors))
    assert isinstance(native, dict)
    return {**native, "type": kind}


def _content(output: ToolOutput, place: str, marks: CacheMarks, errors: ErrorReader) -> str | list[Block]:
    if isinstance(output, TextOutput | ErrorTextOutput):
        return output.value if output.value.strip() else ""  # blank text is refused, and no content is not
    if isinstance(output, JsonOutput | ErrorJsonOutput):
        return json_text(output.value, place, errors)
    if isinstance(output, ExecutionDenied):
        reason = output.reason
        return reason if reason is not None and reason.strip() else DENIED
    if isinstance(output, ContentOutput):
        blocks: list[Block] = []
        for number, piece in enumerate(output.value):
            where = f"{place}.value[{number}]"
            block = _piece(piece, where, errors)
            if block is not None:
                marks.set_on(block, where, getattr(piece, "provider_options", None))
                blocks.append(block)
        return blocks
    raise errors.refused(f"{place}: unknown type {output.type!r}")


def _piece(piece: OutputContent, place: str, errors: ErrorReader) -> Block | None:
    if isinstance(piece, OutputText):
        return {"type": "text", "text": piece.text} if piece.text.strip() else None
    file = output_file(piece, place, errors)
    if file is not None:
        return file_block(file, place, errors)
    block = foreign_block(piece.provider_options, place, errors) if isinstance(piece, OutputCustom) else None
    if block is None:
        raise errors.refused(f"{place}: a tool result carries no part of type {piece.type!r} here")
    if block["type"] not in _TAKEN:
        raise errors.refused(f"{place}: a tool result carries no block of type {block['type']!r}")
    return None if is_blank(block) else block


def output_file(piece: OutputContent, place: str, errors: ErrorReader) -> FilePart | None:
    """The file that a piece of an output is; None where it is none."""
    if isinstance(piece, OutputImageData | OutputFileData):
        name = piece.filename if isinstance(piece, OutputFileData) else None
        return FilePart(piece.media_type, piece.data, name, piece.provider_options)
    if isinstance(piece, OutputImageUrl | OutputFileUrl):
        is_image = isinstance(piece, OutputImageUrl) or piece.url.rpartition(".")[2].lower() in _IMAGE_ENDINGS
        media_type = "image/*" if is_image else "application/pdf"  # the API looks itself what lies there
        return FilePart(media_type, Url(piece.url), provider_options=piece.provider_options)
    if isinstance(piece, OutputFileId | OutputImageFileId):
        id = own_file_id(piece.file_id, f"{place}.file_id", errors)
        own = {**part_options(piece.provider_options), "fileId": id}
        media_type = "image/*" if isinstance(piece, OutputImageFileId) else "application/octet-stream"
        return FilePart(media_type, b"", None, {**(piece.provider_options or {}), KEY: own})
    return None
