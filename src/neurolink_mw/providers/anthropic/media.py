"""V3 to native: files as image, document and container_upload blocks. Pure.

Options of a file, in its `provider_options["anthropic"]`: `fileId`, the id of a file that the Files API keeps, in place
of the data; `containerUpload: true` puts that one into the container of code execution; `title` (else the file's name),
`context` and `citations` (`{"enabled": true}`) of a document; `transformations` of an image.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from ...protocol import JSON, FilePart, JSONObject, Url
from ..common.json_values import plain
from .errors import ErrorReader
from .native_values import Block, snaked
from .options import KEY, part_options

IMAGES: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
PDF: Final = "application/pdf"
# Text of other kinds is sent as plain text: the model reads it as well.
_TEXT: Final = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})


def file_block(part: FilePart, place: str, errors: ErrorReader) -> Block:
    """The block of a file. Raises InvalidRequestError that names the place for what the API does not take."""
    own = part_options(part.provider_options)
    media_type = bare_media_type(part.media_type)
    file_id = own.get("fileId")
    if file_id is not None:
        return _by_id(file_id, media_type, part, own, place, errors)
    if not isinstance(part.data, Url) and not part.data:
        raise errors.refused(f"{place}: the file is empty, and the API takes no empty files")
    if _is_image(media_type):
        return _image(_image_source(media_type, part, place, errors), own, place, errors)
    if _is_pdf(media_type, part):
        return _document(_pdf_source(part), part, own, place, errors)
    if is_text(media_type):
        return _document(_text_source(part, place, errors), part, own, place, errors)
    allowed = ", ".join((*sorted(IMAGES), PDF, "text/*", *sorted(_TEXT)))
    raise errors.refused(f"{place}: unsupported media type {part.media_type!r}; the API takes {allowed}")


def bare_media_type(media_type: str) -> str:
    """A media type without its parameters, in the spelling that the API knows."""
    bare = media_type.partition(";")[0].strip().lower()
    return "image/jpeg" if bare == "image/jpg" else bare


def is_document(part: FilePart) -> bool:
    """Whether a file's block is a document, which citations count."""
    own = part_options(part.provider_options)
    uploaded = own.get("fileId") is not None and own.get("containerUpload") is True
    return not uploaded and not _is_image(bare_media_type(part.media_type))


def is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type == "text" or media_type in _TEXT


def own_file_id(file_id: JSON, place: str, errors: ErrorReader) -> str:
    """An id, or what a map of provider to id has for this one."""
    own = file_id.get(KEY) if isinstance(file_id, Mapping) else file_id
    if not isinstance(own, str) or not own:
        raise errors.refused(f"{place}: expected a file's id here, as a string or as {{{KEY!r}: id}}")
    return own


def _by_id(file_id: JSON, media_type: str, part: FilePart, own: JSONObject, place: str, errors: ErrorReader) -> Block:
    source: Block = {"type": "file", "file_id": own_file_id(file_id, f"{place}: fileId", errors)}
    if own.get("containerUpload") is True:
        return {"type": "container_upload", "file_id": source["file_id"]}
    if _is_image(media_type):
        return _image(source, own, place, errors)
    return _document(source, part, own, place, errors)


def _image(source: Block, own: JSONObject, place: str, errors: ErrorReader) -> Block:
    native: Block = {"type": "image", "source": source}
    if (changes := own.get("transformations")) is not None:
        native["transformations"] = snaked(plain(changes, place, errors))
    return native


def _document(source: Block, part: FilePart, own: JSONObject, place: str, errors: ErrorReader) -> Block:
    native: Block = {"type": "document", "source": source}
    title = own.get("title", part.filename)
    for name, item in (("title", title), ("context", own.get("context"))):
        if item is None:
            continue
        if not isinstance(item, str):
            raise errors.refused(f"{place}: {name} of a document is a string, not {type(item).__name__}")
        native[name] = item
    if (citations := own.get("citations")) is not None:
        if not isinstance(citations, Mapping) or not isinstance(citations.get("enabled"), bool):
            raise errors.refused(f'{place}: citations of a document is {{"enabled": true}} or {{"enabled": false}}')
        native["citations"] = {"enabled": citations["enabled"]}
    return native


def _is_image(media_type: str) -> bool:
    return media_type == "image" or media_type.startswith("image/")


def _is_pdf(media_type: str, part: FilePart) -> bool:
    if media_type in ("application", "application/*", "*/*", ""):
        return not isinstance(part.data, Url) and part.data.startswith(b"%PDF-")
    return media_type == PDF


def _image_source(media_type: str, part: FilePart, place: str, errors: ErrorReader) -> Block:
    if isinstance(part.data, Url):
        return {"type": "url", "url": str(part.data)}
    if media_type in ("image", "image/*"):
        kind = _sniffed(part.data)
        if kind is None:
            raise errors.refused(f"{place}: cannot tell which kind of image this is: say image/png, jpeg, gif or webp")
        media_type = kind
    if media_type not in IMAGES:
        raise errors.refused(
            f"{place}: unsupported media type {part.media_type!r}; the API takes images as {', '.join(sorted(IMAGES))}"
        )
    return {"type": "base64", "media_type": media_type, "data": _base64(part.data)}


def _pdf_source(part: FilePart) -> Block:
    if isinstance(part.data, Url):
        return {"type": "url", "url": str(part.data)}
    return {"type": "base64", "media_type": PDF, "data": _base64(part.data)}


def _text_source(part: FilePart, place: str, errors: ErrorReader) -> Block:
    if isinstance(part.data, Url):
        return {"type": "url", "url": str(part.data)}
    text = _decoded(part.data)
    if text is None:  # raised here, so that not even a context leads to the document
        raise errors.refused(f"{place}: a text document is UTF-8, and this one is not")
    return {"type": "text", "media_type": "text/plain", "data": text}


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _sniffed(data: bytes) -> str | None:
    """The type of an image that the caller calls `image/*`."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "image/jpeg" if data[:3] == b"\xff\xd8\xff" else None
