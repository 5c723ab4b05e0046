"""V3 to native: what a tool said, as a toolResult block. Pure.

Converse takes an object as `json`; everything else travels as text. `status` says whether the tool failed, where the
model takes it. Options of a result, in its `provider_options["bedrock"]`: `status`, and for a result of a server tool
`type` and `content`, as its answer had them.
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
    OutputFileUrl,
    OutputImageData,
    OutputImageUrl,
    OutputText,
    TextOutput,
    ToolOutput,
    ToolResultPart,
    Url,
)
from ..common.json_values import json_text, plain
from .capabilities import Capabilities
from .conversation import is_blank
from .errors import ErrorReader
from .media import DOCUMENTS, IMAGES, VIDEOS, DocumentNames, file_block
from .native_values import Block, restored
from .options import part_options

NOTHING: Final = "(no output)"
"""What stands for a blank output: Converse refuses blank text, and the result must stay."""
DENIED: Final = "Tool execution denied."

_TAKEN: Final = frozenset({"text", "json", "image", "document", "video", "searchResult"})
_BY_ENDING: Final = {
    **{format: media_type for formats in (IMAGES, VIDEOS, DOCUMENTS) for media_type, format in formats.items()},
    "jpg": "image/jpeg",
    "htm": "text/html",
}


class ResultWriter:
    """Makes the toolResult blocks of one request."""

    def __init__(
        self, errors: ErrorReader, names: DocumentNames, capabilities: Capabilities, bucket_owner: str | None = None
    ) -> None:
        self._errors = errors
        self._names = names
        self._with_status = capabilities.result_status
        self._bucket_owner = bucket_owner

    def block(self, part: ToolResultPart, native_id: str, place: str) -> Block:
        """The block that answers a call. Raises InvalidRequestError that names the place for what cannot be sent."""
        own = part_options(part.provider_options)
        kept = own.get("content")
        content = restored(kept) if isinstance(kept, list | tuple) else self._content(part.output, f"{place}.output")
        native: dict[str, object] = {"toolUseId": native_id, "content": content}
        status = own.get("status")
        if status is None and isinstance(part.output, ErrorTextOutput | ErrorJsonOutput):
            status = "error"
        if status is not None and self._with_status:
            if status not in ("success", "error"):
                raise self._errors.refused(f"{place}: status of a tool result is 'success' or 'error'")
            native["status"] = status
        if isinstance(kind := own.get("type"), str):
            native["type"] = kind
        return {"toolResult": native}

    def _content(self, output: ToolOutput, place: str) -> list[Block]:
        if isinstance(output, TextOutput | ErrorTextOutput):
            return [_text(output.value)]
        if isinstance(output, JsonOutput | ErrorJsonOutput):
            if isinstance(output.value, Mapping):
                return [{"json": plain(output.value, place, self._errors)}]
            text = output.value if isinstance(output.value, str) else json_text(output.value, place, self._errors)
            return [_text(text)]
        if isinstance(output, ExecutionDenied):
            reason = output.reason
            return [{"text": reason if reason is not None and reason.strip() else DENIED}]
        if isinstance(output, ContentOutput):
            pieces = [self._piece(piece, f"{place}.value[{n}]") for n, piece in enumerate(output.value)]
            return [piece for piece in pieces if piece is not None] or [_text("")]
        raise self._errors.refused(f"{place}: unknown type {output.type!r}")

    def _piece(self, piece: OutputContent, place: str) -> Block | None:
        if isinstance(piece, OutputText):
            return {"text": piece.text} if piece.text.strip() else None
        if isinstance(piece, OutputImageData | OutputFileData):
            name = piece.filename if isinstance(piece, OutputFileData) else None
            file = FilePart(piece.media_type, piece.data, name, piece.provider_options)
            return self._taken(file_block(file, place, self._names, self._errors), place)
        if isinstance(piece, OutputImageUrl | OutputFileUrl):
            ending = piece.url.rpartition(".")[2].lower()
            media_type = _BY_ENDING.get(ending, "image/*" if isinstance(piece, OutputImageUrl) else "text/plain")
            file = FilePart(media_type, Url(piece.url), piece.url.rpartition("/")[2], piece.provider_options)
            return self._taken(file_block(file, place, self._names, self._errors, self._bucket_owner), place)
        if isinstance(piece, OutputCustom):
            block = foreign_block(piece.provider_options)
            if block is not None:
                return None if is_blank(block) else self._taken(block, place)
        raise self._errors.refused(f"{place}: a tool result carries no part of type {piece.type!r} here")

    def _taken(self, block: Block, place: str) -> Block:
        kind = next(iter(block))
        if kind not in _TAKEN:
            raise self._errors.refused(f"{place}: a tool result carries text, images, documents and videos, no {kind}")
        return block


def foreign_block(provider_options: Mapping[str, object] | None) -> Block | None:
    """The native block that a part carries in `block`; None where it carries none of one kind."""
    kept = part_options(provider_options).get("block")
    block = restored(kept) if isinstance(kept, Mapping) else None
    return block if isinstance(block, dict) and len(block) == 1 else None


def _text(text: str) -> Block:
    return {"text": text if text.strip() else NOTHING}
