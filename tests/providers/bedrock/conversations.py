"""Hypothesis strategies: Converse conversations as the service takes them, and V3 prompts of any shape."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from neurolink_mw.protocol import (
    AssistantMessage,
    ContentOutput,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExecutionDenied,
    FilePart,
    JsonOutput,
    Message,
    OutputImageData,
    OutputText,
    ReasoningPart,
    SystemMessage,
    TextOutput,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    UserMessage,
)

from .native import PNG, Json

TEXTS = st.text(alphabet="ab é😀\n.", min_size=1, max_size=8).map(lambda text: f"x{text}")
BYTES = st.binary(min_size=1, max_size=6)
NAMES = st.sampled_from(["look", "find-it", "do_it"])
IDS = st.sampled_from(["t1", "t2", "t3", "call.1:2"])
OBJECTS = st.dictionaries(
    st.sampled_from(["q", "$bytes", "$json", "text"]),
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.floats(0, 1) | TEXTS,
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "$bytes"]), inner, max_size=2)
        ),
        max_leaves=4,
    ),
    max_size=3,
)
POINTS = st.sampled_from([{"type": "default"}, {"type": "default", "ttl": "1h"}]).map(
    lambda point: {"cachePoint": point}
)
LOCATIONS = st.fixed_dictionaries(
    {"uri": st.just("s3://bucket-a/file")}, optional={"bucketOwner": st.just("123456789012")}
).map(lambda place: {"s3Location": place})
SOURCES = st.one_of(BYTES.map(lambda data: {"bytes": data}), LOCATIONS)


def _block(kind: str, required: dict[str, Any], optional: dict[str, Any] | None = None) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(required, optional=optional or {}).map(lambda body: {kind: body})


TEXT = TEXTS.map(lambda text: {"text": text})
IMAGES = _block(
    "image",
    {"format": st.sampled_from(["png", "jpeg", "gif", "webp"]), "source": SOURCES},
    {"error": st.just({"message": "too dark"})},
)
VIDEOS = _block("video", {"format": st.sampled_from(["mp4", "three_gp", "mpg", "mkv"]), "source": SOURCES})
AUDIO = _block("audio", {"format": st.sampled_from(["mp3", "mpeg", "mka", "x-aac"]), "source": SOURCES})
GUARDED = _block("guardContent", {"text": st.fixed_dictionaries({"text": TEXTS, "qualifiers": st.just(["query"])})})
FOUND = _block("searchResult", {"source": TEXTS, "title": TEXTS, "content": TEXTS.map(lambda text: [{"text": text}])})
CITATIONS = st.lists(
    st.fixed_dictionaries({"title": TEXTS}, optional={"location": st.just({"web": {"url": "https://a.test"}})}),
    min_size=1,
    max_size=2,
)
CITED = _block(
    "citationsContent",
    {"content": st.lists(TEXTS.map(lambda text: {"text": text}), min_size=1, max_size=2)},
    {"citations": CITATIONS},
)
SIGNED = st.fixed_dictionaries({"text": TEXTS | st.just(""), "signature": TEXTS}).map(
    lambda said: {"reasoningContent": {"reasoningText": said}}
)
REDACTED = BYTES.map(lambda data: {"reasoningContent": {"redactedContent": data}})


@st.composite
def _documents(draw: st.DrawFn, taken: set[str]) -> Json:
    """Names are unique in a conversation, as the service wants them."""
    name = draw(st.sampled_from(["plan", "plan (2)", "a-b [c]", "Report 1"]).filter(lambda name: name not in taken))
    taken.add(name)
    source = draw(SOURCES | TEXTS.map(lambda text: {"text": text}) | st.just({"content": [{"text": "part"}]}))
    format = draw(st.sampled_from([{}, {"format": "pdf"}, {"format": "txt"}, {"format": "md"}]))
    more: Json = draw(st.sampled_from([{}, {"context": "of law"}, {"citations": {"enabled": True}}]))
    return {"document": {**format, "name": name, "source": source, **more}}


@st.composite
def _results(draw: st.DrawFn, id: str, taken: set[str]) -> Json:
    pieces = [TEXT, OBJECTS.map(lambda data: {"json": data}), IMAGES, FOUND, VIDEOS]
    if len(taken) < 4:
        pieces.append(_documents(taken))
    content = draw(st.lists(st.one_of(pieces), min_size=1, max_size=3))
    status = draw(st.sampled_from([{}, {"status": "success"}, {"status": "error"}]))
    return {"toolResult": {"toolUseId": id, "content": content, **status}}


@st.composite
def conversations(draw: st.DrawFn) -> list[Json]:
    """Roles alternate, calls are answered in order at the beginning of the next message, and ids come again."""
    taken: set[str] = set()
    messages: list[Json] = []
    pending: list[str] = []
    for number in range(draw(st.integers(1, 6))):
        content: list[Json] = []
        if number % 2 == 0:
            for id in pending:
                content.append(draw(_results(id, taken)))
                content.extend([draw(POINTS)] if draw(st.booleans()) else [])
            kinds = [TEXT, IMAGES, VIDEOS, AUDIO, GUARDED, FOUND]
            if len(taken) < 4:
                kinds.append(_documents(taken))
            for _ in range(draw(st.integers(0 if content else 1, 3))):
                content.append(draw(st.one_of(kinds)))
                content.extend([draw(POINTS)] if draw(st.integers(0, 3)) == 0 else [])
            messages.append({"role": "user", "content": content})
        else:
            # A call whose answer would not come any more must not be the last.
            pending = draw(st.lists(IDS, max_size=2, unique=True))
            content.extend(draw(st.lists(st.one_of(TEXT, SIGNED, REDACTED, CITED, IMAGES), min_size=1, max_size=3)))
            content.extend([draw(POINTS)] if draw(st.integers(0, 3)) == 0 else [])
            if draw(st.integers(0, 4)) == 0:
                server = {"toolUseId": "s1", "name": "search", "input": draw(OBJECTS), "type": "server_tool_use"}
                said = {"toolUseId": "s1", "content": draw(st.lists(TEXT | FOUND, min_size=1, max_size=2)), "type": "x"}
                content.extend([{"toolUse": server}, {"toolResult": said}])
            for id in pending:
                content.append({"toolUse": {"toolUseId": id, "name": draw(NAMES), "input": draw(OBJECTS)}})
                content.extend([draw(POINTS)] if draw(st.integers(0, 3)) == 0 else [])
            messages.append({"role": "assistant", "content": content})
    if messages[-1]["role"] == "assistant" and pending:
        messages.append({"role": "user", "content": [draw(_results(id, taken)) for id in pending]})
    return messages


SYSTEMS = st.lists(TEXT | GUARDED | POINTS, max_size=4)

# ----------------------------------------------------------------------------------------------------------- prompts

_OWN = st.none() | st.just({"bedrock": {"cachePoint": {"type": "default"}}})
_ANY_TEXT = st.sampled_from(["", " ", "\n", "words", " more words "])
_ANY_ID = st.sampled_from(["a", "b", "c~2", "x" * 70])
_ANY_INPUT: st.SearchStrategy[Any] = OBJECTS | st.sampled_from([[1], "{broken", None, 5])
_OUTPUTS = st.one_of(
    _ANY_TEXT.map(TextOutput),
    _ANY_TEXT.map(ErrorTextOutput),
    _ANY_INPUT.map(JsonOutput),
    _ANY_INPUT.map(ErrorJsonOutput),
    st.just(ExecutionDenied()),
    st.lists(_ANY_TEXT.map(OutputText) | st.just(OutputImageData(PNG, "image/*")), max_size=2).map(
        lambda pieces: ContentOutput(tuple(pieces))
    ),
)
_RESULTS = st.builds(ToolResultPart, _ANY_ID, st.just("look.up"), _OUTPUTS, _OWN)
_USER_PARTS = st.builds(TextPart, _ANY_TEXT, _OWN) | st.just(FilePart("application/pdf", b"%PDF", "plan.pdf"))
_ASSISTANT_PARTS = st.one_of(
    st.builds(TextPart, _ANY_TEXT, _OWN),
    st.builds(ReasoningPart, _ANY_TEXT, st.sampled_from([None, {"bedrock": {"signature": "S"}}])),
    st.builds(ToolCallPart, _ANY_ID, st.sampled_from(["look.up", "find"]), _ANY_INPUT, st.none(), _OWN),
    _RESULTS,
)
_MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(SystemMessage, _ANY_TEXT, _OWN),
    st.builds(UserMessage, st.lists(_USER_PARTS, max_size=2), _OWN),
    st.builds(AssistantMessage, st.lists(_ASSISTANT_PARTS, max_size=3), _OWN),
    st.builds(ToolMessage, st.lists(_RESULTS, max_size=3), _OWN),
)


@st.composite
def _batches(draw: st.DrawFn) -> list[Message]:
    """Calls, something in between perhaps, and their results in any order."""
    ids = draw(st.lists(_ANY_ID, min_size=1, max_size=3, unique=True))
    said = draw(st.lists(_ASSISTANT_PARTS.filter(lambda part: part.type in ("text", "reasoning")), max_size=1))
    calls = [ToolCallPart(id, "look.up", draw(_ANY_INPUT), provider_options=draw(_OWN)) for id in ids]
    results = [ToolResultPart(id, "look.up", draw(_OUTPUTS), draw(_OWN)) for id in draw(st.permutations(ids))]
    late = draw(st.lists(st.builds(SystemMessage, _ANY_TEXT), max_size=1))
    return [AssistantMessage([*said, *calls]), *late, *(ToolMessage([result]) for result in results)]


PROMPTS = st.lists(_MESSAGES.map(lambda message: [message]) | _batches(), max_size=6).map(
    lambda batches: [message for batch in batches for message in batch]
)
