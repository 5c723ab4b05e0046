"""Files as images, documents and uploads."""

from __future__ import annotations

import base64

import pytest

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import FilePart, Message, Url
from neurolink_mw.providers.anthropic.request import build_request

from .builders import HAIKU, PNG, content_of, options, own, said


def refusal(*prompt: Message) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        build_request(HAIKU, options(*prompt))
    return str(caught.value)


def test_an_image_without_its_kind_is_told_by_its_first_bytes() -> None:
    gif, webp = b"GIF89a" + bytes(7), b"RIFF\0\0\0\0WEBP"
    blocks = content_of(*(FilePart("image/*", data) for data in (PNG, gif, webp, b"\xff\xd8\xff")))
    assert [block["source"]["media_type"] for block in blocks] == ["image/png", "image/gif", "image/webp", "image/jpeg"]


def test_an_image_of_unknown_kind_is_refused() -> None:
    assert "cannot tell which kind of image" in refusal(said(FilePart("image/*", b"????")))
    assert "unsupported media type 'image/tiff'" in refusal(said(FilePart("image/tiff", b"II*")))


def test_an_image_may_be_made_smaller_by_the_api() -> None:
    options_of_image = own(transformations={"oversizedImage": "downsize"})
    (block,) = content_of(FilePart("image/jpg", b"\xff\xd8\xff", None, options_of_image))
    assert block["transformations"] == {"oversized_image": "downsize"}
    assert block["source"]["media_type"] == "image/jpeg"


@pytest.mark.parametrize("media_type", ["text/markdown", "application/json", "text/plain; charset=utf-8"])
def test_text_of_any_kind_is_a_text_document(media_type: str) -> None:
    (block,) = content_of(FilePart(media_type, "æ".encode(), "n.md", own(citations={"enabled": True}, context="c")))
    assert block == {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "æ"},
        "title": "n.md",
        "context": "c",
        "citations": {"enabled": True},
    }


def test_a_pdf_is_sent_as_base64_or_by_its_address() -> None:
    data, address = content_of(
        FilePart("application/pdf", b"%PDF-1"), FilePart("application/pdf", Url("https://d.test/a"))
    )
    assert data["source"]["data"] == base64.b64encode(b"%PDF-1").decode()
    assert address["source"] == {"type": "url", "url": "https://d.test/a"}


def test_a_file_that_the_service_keeps_is_sent_by_its_id() -> None:
    image, document, upload = content_of(
        FilePart("image/png", b"", None, own(fileId="file_1")),
        FilePart("application/pdf", b"", "a.pdf", own(fileId={"anthropic": "file_2"}, title="A")),
        FilePart("text/csv", b"", None, own(fileId="file_3", containerUpload=True)),
    )
    assert image == {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
    assert document == {"type": "document", "source": {"type": "file", "file_id": "file_2"}, "title": "A"}
    assert upload == {"type": "container_upload", "file_id": "file_3"}


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        (FilePart("image/png", b""), "the file is empty"),
        (FilePart("text/plain", b"\xff\xfe"), "a text document is UTF-8"),
        (FilePart("audio/mpeg", b"x"), "unsupported media type 'audio/mpeg'; the API takes image/gif"),
        (FilePart("text/plain", b"x", None, own(citations=True)), "citations of a document is"),
        (FilePart("text/plain", b"x", None, own(title=4)), "title of a document is a string"),
        (FilePart("text/plain", b"", None, own(fileId={"other": "x"})), "expected a file's id here"),
    ],
)
def test_a_file_that_cannot_be_sent_is_refused_by_its_place(part: FilePart, problem: str) -> None:
    assert refusal(said("q", part)).startswith(f"prompt[0].content[1]: {problem}".partition(": exp")[0])
    assert problem in refusal(said("q", part))
