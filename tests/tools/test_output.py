"""What a tool returns, as what the model reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from enum import Enum, StrEnum
from typing import Any

import pytest
from pydantic import BaseModel

from neurolink_mw.protocol import (
    ContentOutput,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExcerptLimits,
    ExecutionDenied,
    JsonOutput,
    OutputImageData,
    OutputText,
    TextOutput,
    ToolOutcome,
    to_json,
)

from .builders import Turn, call, explicit, failed, said

pytestmark = pytest.mark.anyio

IMAGE = OutputImageData(b"\x89PNG", "image/png")
TEXT = OutputText("A picture.")


class Place(BaseModel):
    city: str
    since: date


@dataclass
class Point:
    x: int


class Colour(str, Enum):  # noqa: UP042  # it says "Colour.RED" of itself
    RED = "red"


class Shade(StrEnum):
    DARK = "dark"


def giving(value: Any) -> Any:
    return explicit(lambda given: value)


@pytest.mark.parametrize(
    ("returned", "output"),
    [
        ("Sunny.", TextOutput("Sunny.")),
        ("", TextOutput("")),
        (Colour.RED, TextOutput("red")),
        (Shade.DARK, TextOutput("dark")),
        ({"a": [1, 2.5, None, True]}, JsonOutput({"a": [1, 2.5, None, True]})),
        ([], JsonOutput([])),
        (None, JsonOutput(None)),
        (0, JsonOutput(0)),
        (False, JsonOutput(False)),
        (2**80, JsonOutput(2**80)),
        (Place(city="Oslo", since=date(1048, 1, 1)), JsonOutput({"city": "Oslo", "since": "1048-01-01"})),
        ([Point(1), Point(2)], JsonOutput([{"x": 1}, {"x": 2}])),
        ({1: "a"}, JsonOutput({"1": "a"})),
        ({"at": date(2026, 1, 2), "of": {Colour.RED}}, JsonOutput({"at": "2026-01-02", "of": ["red"]})),
        (IMAGE, ContentOutput((IMAGE,))),
        ([TEXT, IMAGE], ContentOutput((TEXT, IMAGE))),
        ((TEXT, IMAGE), ContentOutput((TEXT, IMAGE))),
        (TextOutput("as it is"), TextOutput("as it is")),
        (JsonOutput({"a": 1}), JsonOutput({"a": 1})),
        (ContentOutput((IMAGE,)), ContentOutput((IMAGE,))),
    ],
)
async def test_it_becomes_the_output_that_carries_it(returned: object, output: object) -> None:
    assert await said(giving(returned)) == ToolOutcome(output)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("returned", "status"),
    [
        (ErrorTextOutput("no"), "error"),
        (ErrorJsonOutput({"code": 1}), "error"),
        (ExecutionDenied("no"), "denied"),
        (ToolOutcome(TextOutput("slow"), "timeout"), "timeout"),
        (ToolOutcome(ErrorTextOutput("no")), "error"),
    ],
)
async def test_an_output_that_tells_of_a_failure_counts_as_one(returned: Any, status: str) -> None:
    outcome = await said(giving(returned))
    assert outcome.status == status
    assert outcome.output == (returned.output if isinstance(returned, ToolOutcome) else returned)


async def test_so_does_an_error_of_mcp() -> None:
    payload: dict[str, Any] = {"content": [{"type": "text", "text": "no"}], "isError": True}
    assert await said(giving(payload)) == ToolOutcome(ErrorJsonOutput(payload), "error")
    payload["isError"] = False
    assert await said(giving(payload)) == ToolOutcome(JsonOutput(payload))


async def test_numbers_that_json_does_not_know_are_texts() -> None:
    outcome = await said(giving({"a": math.nan, "b": [math.inf, -math.inf]}))
    assert outcome.output == JsonOutput({"a": "NaN", "b": ["Infinity", "-Infinity"]})


async def test_a_text_that_utf_8_cannot_carry_is_mended() -> None:
    for returned in ("a\udcff b é", TextOutput("a\udcff b é")):
        assert (await said(giving(returned))).output == TextOutput("a? b é")


def cyclic() -> object:
    ring: list[object] = []
    ring.append(ring)
    return ring


def deep() -> object:
    outer: object = None
    for _ in range(5000):
        outer = [outer]
    return outer


@pytest.mark.parametrize(
    ("returned", "named"),
    [
        (b"\x89PNG", "bytes are no result: return OutputImageData(data, media_type) or OutputFileData(...)"),
        (bytearray(b"x"), "bytes are no result"),
        ({"a": b"\xff"}, "utf-8"),
        (cyclic(), "Circular reference"),
        (deep(), "depth"),
        (object(), "Unable to serialize unknown type"),
        (JsonOutput({"a": object()}), "Unable to serialize unknown type"),  # type: ignore[dict-item]
        (TextOutput(5), "TextOutput.value is a text, not int"),  # type: ignore[arg-type]
        (ContentOutput(("a",)), "ContentOutput.value is a tuple of pieces"),  # type: ignore[arg-type]
    ],
)
async def test_what_no_output_can_carry_is_an_error_that_says_so(returned: object, named: str) -> None:
    text = await failed(giving(returned))
    assert text.startswith("The tool 'tool' failed with ")
    assert named in text


async def test_whatever_comes_of_it_can_be_written() -> None:
    for returned in (
        {"a": math.nan},
        "a\udcff",
        {1: 2},
        [TEXT, IMAGE],
        None,
        object(),
        Place(city="x", since=date.max),
    ):
        to_json((await said(giving(returned))).output)


# -- in the conversation


def conversation(output: Any, **settings: Any) -> Any:
    return Turn(**settings).executor.in_conversation(output)


async def test_a_long_output_is_an_excerpt_in_the_conversation_and_whole_in_the_record() -> None:
    text = "".join(f"line {index}\n" for index in range(20_000))
    turn = Turn(giving(text))
    (answered,) = await turn.answer(call())
    output = answered.report().output
    assert output == TextOutput(text)
    read = turn.executor.in_conversation(output).value  # type: ignore[union-attr]
    assert isinstance(read, str)
    assert len(read.encode()) <= 50 * 1024
    assert len(read.splitlines()) <= 2000
    assert read.startswith("line 0\n")
    assert read.endswith("line 19999")
    assert "left out" in read


def test_a_short_one_is_the_same_object() -> None:
    for output in (TextOutput("x"), JsonOutput({"a": 1}), ContentOutput((TEXT, IMAGE)), ErrorTextOutput("no")):
        assert conversation(output) is output


def test_no_character_is_split() -> None:
    read = conversation(TextOutput("né✓😀" * 20_000)).value
    assert len(read.encode()) <= 50 * 1024
    assert set(read) <= set("né✓😀") | set(read[read.index("[...") : read.index("...]") + 4]) | {"\n"}


def test_images_stay_beside_long_text() -> None:
    read = conversation(ContentOutput((IMAGE, OutputText("x" * 100_000))))
    assert read.value[0] is IMAGE
    assert len(read.value[1].text) <= 50 * 1024


def test_the_limits_can_be_set_or_taken_away() -> None:
    long = TextOutput("x" * 100_000)
    assert len(conversation(long, output_limits=ExcerptLimits(1000, 10)).value) <= 1000
    assert conversation(long, output_limits=None) is long
