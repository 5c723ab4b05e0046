"""V3 to native: files as image, document, video and audio blocks. Pure.

Options of a file, in its `provider_options["bedrock"]`: `citations` (`{"enabled": true}`) and `context` of a document,
`source: "text"` to send a text file as text, `bucketOwner` of an `s3://` address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ...protocol import FilePart, JSONObject, Url
from .errors import ErrorReader
from .native_values import Block
from .options import part_options

IMAGES: Final = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
DOCUMENTS: Final = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
VIDEOS: Final = {
    "video/x-matroska": "mkv",
    "video/mkv": "mkv",
    "video/quicktime": "mov",
    "video/mov": "mov",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/x-flv": "flv",
    "video/flv": "flv",
    "video/mpeg": "mpeg",
    "video/mpg": "mpg",
    "video/x-ms-wmv": "wmv",
    "video/wmv": "wmv",
    "video/3gpp": "three_gp",
}
AUDIO: Final = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/opus": "opus",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/aac": "aac",
    "audio/x-aac": "x-aac",
    "audio/flac": "flac",
    "audio/x-flac": "flac",
    "audio/mp4": "mp4",
    "audio/ogg": "ogg",
    "audio/x-matroska": "mka",
    "audio/mka": "mka",
    "audio/mkv": "mkv",
    "audio/m4a": "m4a",
    "audio/x-m4a": "m4a",
    "audio/mpga": "mpga",
    "audio/pcm": "pcm",
    "audio/webm": "webm",
}
# Text of other kinds is sent as plain text: the model reads it as well.
_TEXT: Final = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})
_KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "image": IMAGES,
    "document": DOCUMENTS,
    "video": VIDEOS,
    "audio": AUDIO,
}
_NAME = re.compile(r"(?!.*  )[a-zA-Z0-9 ()\[\]-]{1,200}")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9 ()\[\]-]+")
_ENDING = re.compile(r"\w{1,8}")
_LONGEST_NAME = 200


class DocumentNames:
    """Names of the documents of one request: well-formed, unique, and the same for the same prompt.

    Converse takes letters, digits, single spaces, hyphens, parentheses and brackets. A document without a name gets a
    number: a random name would spoil the prompt cache.
    """

    __slots__ = ("_taken", "_unnamed")

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._unnamed = 0

    def take(self, filename: str | None) -> str:
        stem = document_name(filename or "")
        if not stem:
            self._unnamed += 1
            stem = f"document-{self._unnamed}"
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem[: _LONGEST_NAME - 8]}-{number}"
        self._taken.add(name)
        return name


def document_name(filename: str) -> str:
    """A file's name without its last ending, in characters that Converse takes; "" where none is left."""
    stem, _, ending = filename.rpartition(".")
    if not stem or not _ENDING.fullmatch(ending):
        stem = filename
    if _NAME.fullmatch(stem):
        return stem
    hyphened = re.sub(r"-{2,}", "-", _NOT_IN_NAMES.sub("-", re.sub(r"\s+", " ", stem)))
    return hyphened.strip(" -")[:_LONGEST_NAME]


def file_block(
    part: FilePart, place: str, names: DocumentNames, errors: ErrorReader, bucket_owner: str | None = None
) -> Block:
    """The block of a file. Raises InvalidRequestError that names the place for what Converse does not take."""
    own = part_options(part.provider_options)
    media_type = part.media_type.partition(";")[0].strip().lower()
    kind, format = _kind_of(media_type, part, place, errors)
    source = _source(part, own, kind, place, errors, bucket_owner)
    if kind != "document":
        return {kind: {"format": format, "source": source}}
    document: dict[str, object] = {"format": format, "name": names.take(part.filename), "source": source}
    if (context := own.get("context")) is not None:
        if not isinstance(context, str):
            raise errors.refused(f"{place}: context of a document is a string, not {type(context).__name__}")
        document["context"] = context
    if (citations := own.get("citations")) is not None:
        if not isinstance(citations, Mapping) or not isinstance(citations.get("enabled"), bool):
            raise errors.refused(f'{place}: citations of a document is {{"enabled": true}} or {{"enabled": false}}')
        document["citations"] = {"enabled": citations["enabled"]}
    return {"document": document}


def media_type_of(kind: str, format: str) -> str | None:
    """The media type of a native format; None where the format is not known."""
    return next((media_type for media_type, name in _KINDS[kind].items() if name == format), None)


def _kind_of(media_type: str, part: FilePart, place: str, errors: ErrorReader) -> tuple[str, str]:
    if media_type in ("image", "image/*"):
        format = _ending(part.data) if isinstance(part.data, Url) else _sniffed(part.data)
        if format is None:
            raise errors.refused(f"{place}: cannot tell which kind of image this is: say image/png, jpeg, gif or webp")
        return "image", format
    for kind, formats in _KINDS.items():
        if media_type in formats:
            return kind, formats[media_type]
    if media_type.startswith("text/") or media_type in _TEXT:
        return "document", "txt"
    allowed = ", ".join(sorted({"text/*", *IMAGES, *VIDEOS, *AUDIO, *DOCUMENTS, *_TEXT}))
    raise errors.refused(f"{place}: unsupported media type {part.media_type!r}; Converse takes {allowed}")


def _source(
    part: FilePart, own: JSONObject, kind: str, place: str, errors: ErrorReader, bucket_owner: str | None
) -> dict[str, object]:
    if isinstance(part.data, Url):
        address = str(part.data)
        if not address.startswith("s3://"):
            raise errors.refused(
                f"{place}: Converse takes a file as bytes or from S3, not from another address: download it first, or "
                "give an s3:// address"
            )
        location: dict[str, object] = {"uri": address}
        owner = own.get("bucketOwner") or bucket_owner
        if owner is not None:
            if not isinstance(owner, str):
                raise errors.refused(f"{place}: bucketOwner is a string of twelve digits, not {type(owner).__name__}")
            location["bucketOwner"] = owner
        return {"s3Location": location}
    if not part.data:
        raise errors.refused(f"{place}: the file is empty, and Converse takes no empty files")
    if kind == "document" and own.get("source") == "text":
        try:
            return {"text": part.data.decode("utf-8")}
        except UnicodeDecodeError:
            raise errors.refused(f"{place}: a document whose source is text is UTF-8, and this one is not") from None
    return {"bytes": part.data}


def _ending(address: str) -> str | None:
    return IMAGES.get(f"image/{address.rpartition('.')[2].lower()}")


def _sniffed(data: bytes) -> str | None:
    """The format of an image that the caller calls `image/*`. Each test covers a whole header, not only its magic."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        return "png"
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 13:
        return "gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return "jpeg" if data[:3] == b"\xff\xd8\xff" else None
