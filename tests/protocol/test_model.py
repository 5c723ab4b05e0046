"""What a model says about itself."""

from __future__ import annotations

import pytest

from neurolink_mw.protocol import (
    CallOptions,
    GenerateResult,
    LanguageModel,
    StreamResult,
    Text,
    is_first_content,
    is_url_supported,
    parts_of,
    supported_urls,
    user,
    user_text,
)
from neurolink_mw.protocol.parts import StreamPart, TextDelta, TextStart
from neurolink_mw.protocol.prompt import AssistantMessage, FilePart, Message, SystemMessage, TextPart, UserMessage


class Echo:
    provider, model_id = "example", "echo"

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        return GenerateResult((Text(user_text(options.prompt)),))

    async def do_stream(self, options: CallOptions) -> StreamResult:
        return StreamResult.of(await self.do_generate(options))


def test_a_class_with_two_names_and_two_calls_is_a_model() -> None:
    model: LanguageModel = Echo()
    assert isinstance(model, LanguageModel)
    assert not isinstance(object(), LanguageModel)


def test_a_model_that_says_nothing_supports_no_addresses() -> None:
    assert supported_urls(Echo()) == {}


HTTPS = ["^https://"]


@pytest.mark.parametrize(
    ("media_type", "url", "supported", "expected"),
    [
        ("image/png", "https://a.b/c", {}, False),
        ("image/png", "https://a.b/c", {"image/png": HTTPS}, True),
        ("image/png", "http://a.b/c", {"image/png": HTTPS}, False),
        ("image/jpeg", "https://a.b/c", {"image/png": HTTPS}, False),
        ("image/png", "https://a.b/c", {"image/*": HTTPS}, True),
        ("image/*", "https://a.b/c", {"image/*": HTTPS}, True),
        ("video/png", "https://a.b/c", {"image/*": HTTPS}, False),
        ("video/mp4", "https://a.b/c", {"*": HTTPS}, True),
        ("video/mp4", "https://a.b/c", {"*/*": HTTPS}, True),
        ("IMAGE/PNG", "https://a.b/c", {"image/png": HTTPS}, True),
        ("image/png", "https://a.b/c", {"Image/*": HTTPS}, True),
        ("image/png", "HTTPS://A.B/C", {"image/*": HTTPS}, True),
        ("image/png", "https://a.b/C", {"image/*": ["/C$"]}, True),
        ("image/png", "https://a.b/c", {"image/*": []}, False),
        ("image/png", "https://a.b/c", {"image/*": ["^gs://", "^https://"]}, True),
        ("image/png", "https://a.b/c", {"image/*": ["^gs://"], "*": HTTPS}, True),
        ("image/png", "https://files.a.b/c", {"image/*": [r"a\.b"]}, True),
    ],
)
def test_an_address_is_supported_where_media_type_and_expression_match(
    media_type: str, url: str, supported: dict[str, list[str]], expected: bool
) -> None:
    assert is_url_supported(media_type, url, supported) is expected


def test_the_users_text_leaves_out_what_others_said_and_files() -> None:
    prompt: list[Message] = [
        SystemMessage("system"),
        UserMessage([TextPart("a"), FilePart("image/png", b""), TextPart("b")]),
        AssistantMessage([TextPart("assistant")]),
        user("c"),
    ]
    assert user_text(prompt) == "a b\nc"


@pytest.mark.parametrize(
    ("part", "expected"), [(TextStart("0"), False), (TextDelta("0", ""), False), (TextDelta("0", "a"), True)]
)
def test_the_first_content_is_the_first_text_that_is_not_empty(part: StreamPart, expected: bool) -> None:
    assert is_first_content(part) is expected


def test_an_empty_answer_begins_with_its_finish() -> None:
    assert [is_first_content(part) for part in parts_of(GenerateResult())] == [False, True]
