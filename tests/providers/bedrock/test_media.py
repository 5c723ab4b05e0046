"""Files as image, document, video and audio blocks."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import FilePart, Url

from .native import PNG, Json, messages_of, own, said


def files(*parts: FilePart, **more: Any) -> list[Json]:
    content: list[Json] = messages_of(said("q", *parts), **more)[0]["content"][1:]
    return content


@pytest.mark.parametrize(
    ("media_type", "kind", "format"),
    [
        ("image/png", "image", "png"),
        ("IMAGE/JPG", "image", "jpeg"),
        ("application/pdf", "document", "pdf"),
        ("text/markdown; charset=utf-8", "document", "md"),
        ("text/x-python", "document", "txt"),
        ("application/json", "document", "txt"),
        ("video/quicktime", "video", "mov"),
        ("video/3gpp", "video", "three_gp"),
        ("audio/mpeg", "audio", "mp3"),
        ("audio/x-wav", "audio", "wav"),
    ],
)
def test_the_media_type_says_which_block_a_file_is(media_type: str, kind: str, format: str) -> None:
    (block,) = files(FilePart(media_type, b"data"))
    assert block[kind]["format"] == format
    assert block[kind]["source"] == {"bytes": b"data"}


@pytest.mark.parametrize(
    ("data", "format"),
    [
        (PNG, "png"),
        (b"\xff\xd8\xff\xe0", "jpeg"),
        (b"GIF89a" + bytes(8), "gif"),
        (b"RIFF\x00\x00\x00\x00WEBP", "webp"),
        (Url("s3://bucket-a/x.jpg"), "jpeg"),
    ],
)
def test_an_image_of_any_kind_is_looked_at(data: Any, format: str) -> None:
    (block,) = files(FilePart("image/*", data))
    assert block["image"]["format"] == format


def test_s3_addresses_go_with_the_bucket_owner() -> None:
    named = FilePart("image/png", Url("s3://bucket-a/x"), provider_options=own(bucketOwner="111122223333"))
    blocks = files(named, FilePart("video/mp4", Url("s3://bucket-a/v")), bucket_owner="999999999999")
    assert blocks[0]["image"]["source"]["s3Location"] == {"uri": "s3://bucket-a/x", "bucketOwner": "111122223333"}
    assert blocks[1]["video"]["source"]["s3Location"] == {"uri": "s3://bucket-a/v", "bucketOwner": "999999999999"}


def test_documents_have_names_that_converse_takes_and_no_two_the_same() -> None:
    names = ["plan.v2.pdf", "plan.v2.pdf", None, "a  b_c.pdf", "???.pdf", None, "no ending", "Ünï.pdf"]
    blocks = files(*(FilePart("application/pdf", b"x", name) for name in names))
    assert [block["document"]["name"] for block in blocks] == [
        *("plan-v2", "plan-v2-2", "document-1", "a b-c", "document-2", "document-3", "no ending", "n")
    ]


def test_a_document_has_citations_context_and_its_text_where_asked_for() -> None:
    options = own(citations={"enabled": True}, context="a law", source="text")
    (block,) = files(FilePart("text/plain", "§ 1".encode(), "law.txt", options))
    assert block["document"] == {
        "format": "txt",
        "name": "law",
        "source": {"text": "§ 1"},
        "context": "a law",
        "citations": {"enabled": True},
    }


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (
            FilePart("application/zip", b"PK"),
            "unsupported media type 'application/zip'; Converse takes .*application/pdf",
        ),
        (FilePart("image/*", b"what"), "cannot tell which kind of image"),
        (FilePart("image/png", b""), "the file is empty"),
        (FilePart("image/png", Url("https://a.test/x.png?secret")), "not from another address: download it first"),
        (FilePart("text/plain", b"\xff", None, own(source="text")), "UTF-8"),
        (FilePart("text/plain", b"x", None, own(citations=True)), "citations"),
        (FilePart("text/plain", b"x", None, own(context=5)), "context"),
        (FilePart("image/png", Url("s3://b-a/x"), None, own(bucketOwner=5)), "bucketOwner"),
    ],
)
def test_a_file_that_cannot_be_sent_is_refused_by_its_place(part: FilePart, reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=rf"prompt\[0\]\.content\[1\]: .*{reason}") as caught:
        files(part)
    assert "secret" not in str(caught.value)
