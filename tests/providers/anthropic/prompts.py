"""Hypothesis strategies: V3 prompts of any shape, and messages as the API answers them."""

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
    OutputFileUrl,
    OutputImageData,
    OutputText,
    SystemMessage,
    TextOutput,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    UserMessage,
)

from .builders import MARK, PNG, Json, own, thought
from .events import PAGE, WEB_CITATION, mcp_result, mcp_use, redacted, server_result, server_use, text, thinking, use

TEXTS = st.text(alphabet="ab é😀\n", max_size=6)
WORDS = TEXTS.map(lambda said: f"x{said}")
IDS = st.sampled_from(["c1", "c2", "c3", "call.1:2"])
NAMES = st.sampled_from(["look", "a.look", "finder"])
OBJECTS: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from(["q", "someName", "type"]), st.none() | st.integers(-5, 5) | WORDS | st.lists(WORDS, max_size=2)
)
HITS: st.SearchStrategy[Any] = st.dictionaries(st.sampled_from(["q", "someName"]), st.integers(-5, 5) | WORDS)
OPTIONS = st.none() | st.just(own(cacheControl=MARK))

# ----------------------------------------------------------------------------------------------------------- prompts

_PIECES = st.one_of(
    TEXTS.map(OutputText), st.just(OutputImageData(PNG, "image/png")), st.just(OutputFileUrl("https://d.test/a.pdf"))
)
_OUTPUTS = st.one_of(
    TEXTS.map(TextOutput),
    HITS.map(JsonOutput),
    TEXTS.map(ErrorTextOutput),
    HITS.map(ErrorJsonOutput),
    st.builds(ExecutionDenied, st.none() | TEXTS),
    st.lists(_PIECES, max_size=3).map(lambda pieces: ContentOutput(tuple(pieces))),
)
_TEXT_PARTS = st.builds(TextPart, TEXTS, OPTIONS)
_FILES = st.one_of(
    st.just(FilePart("image/*", PNG)),
    st.just(FilePart("application/pdf", b"%PDF-", "a.pdf", own(cacheControl=MARK))),
    st.just(FilePart("text/plain", b"note", None, own(context="c"))),
)
_REASONING = st.one_of(
    st.builds(thought, TEXTS),
    st.builds(thought, TEXTS, signature=WORDS),
    st.builds(thought, st.just(""), redactedData=WORDS),
)
_CALLS = st.builds(ToolCallPart, IDS, NAMES, OBJECTS | WORDS, st.none() | st.booleans(), OPTIONS)
_SERVED = st.builds(ToolCallPart, IDS, st.just("finder"), OBJECTS, st.just(True), OPTIONS)
_RESULTS = st.builds(ToolResultPart, IDS, NAMES, _OUTPUTS, OPTIONS)
_SAID = _TEXT_PARTS | _REASONING | _SERVED


def _exchange(calls: list[str], order: list[str]) -> list[Message]:
    """A message with calls, and their results in another order."""
    asked = AssistantMessage([ToolCallPart(id, "look", {"q": 1}) for id in calls])
    return [asked, ToolMessage([ToolResultPart(id, "look", TextOutput("found")) for id in order])]


_EXCHANGES = st.lists(IDS, min_size=1, unique=True).flatmap(
    lambda ids: st.permutations(ids).map(lambda order: _exchange(ids, order))
)
_MESSAGES = st.one_of(
    st.builds(SystemMessage, TEXTS, OPTIONS).map(lambda one: [one]),
    st.builds(UserMessage, st.lists(_TEXT_PARTS | _FILES, max_size=3), OPTIONS).map(lambda one: [one]),
    st.builds(AssistantMessage, st.lists(_SAID, max_size=3), OPTIONS).map(lambda one: [one]),
    st.builds(AssistantMessage, st.lists(_CALLS | _RESULTS | _TEXT_PARTS, max_size=3), OPTIONS).map(lambda one: [one]),
    st.builds(ToolMessage, st.lists(_RESULTS, max_size=3), OPTIONS).map(lambda one: [one]),
    _EXCHANGES,
    _EXCHANGES,
)
PROMPTS: st.SearchStrategy[list[Message]] = st.lists(_MESSAGES, min_size=1, max_size=5).map(
    lambda groups: [message for group in groups for message in group]
)

# ----------------------------------------------------------------------------------------------------------- answers

_ERROR: Json = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
_OUTPUT: Json = {"type": "bash_code_execution_result", "stdout": "a", "stderr": "", "return_code": 0, "content": []}
_VIEWED: Json = {"type": "text_editor_code_execution_view_result", "content": "x", "file_type": "text"}
_FETCHED: Json = {
    "type": "web_fetch_result",
    "url": "https://w.test/1",
    "retrieved_at": None,
    "content": {
        "type": "document",
        "title": None,
        "source": {"type": "text", "media_type": "text/plain", "data": "page"},
        "citations": {"enabled": True},
    },
}
_REFERENCES: Json = {
    "type": "tool_search_tool_search_result",
    "tool_references": [{"type": "tool_reference", "tool_name": "look"}],
}
_CALLER: Json = {"type": "code_execution_20250825", "tool_id": "s9"}


def _pair(id: str, name: str, content: object, input: Json | None = None) -> list[Json]:
    family = "tool_search" if name.startswith("tool_search_tool") else name
    kind = "tool_search_tool_result" if family == "tool_search" else f"{name}_tool_result"
    return [server_use(id, name, input), server_result(id, name, content) | {"type": kind}]


def _groups(n: int) -> st.SearchStrategy[list[Json]]:
    """Blocks that belong together, their ids numbered."""
    id = f"id{n}"
    return st.one_of(
        WORDS.map(lambda said: [text(said)]),
        WORDS.map(lambda said: [text(said, WEB_CITATION)]),
        st.builds(thinking, TEXTS, WORDS).map(lambda one: [one]),
        WORDS.map(lambda data: [redacted(data)]),
        OBJECTS.map(lambda input: [use(id, "look", input)]),
        OBJECTS.map(lambda input: [use(id, "look", input, caller=_CALLER)]),
        OBJECTS.map(lambda input: [use(id, "bash", input)]),
        st.just(_pair(id, "web_search", [PAGE])),
        st.just(_pair(id, "web_search", _ERROR)),
        st.just(_pair(id, "web_fetch", _FETCHED, {"url": "https://w.test/1"})),
        st.just(_pair(id, "bash_code_execution", _OUTPUT, {"command": "ls"})),
        st.just(_pair(id, "text_editor_code_execution", _VIEWED, {"command": "view", "path": "a"})),
        st.just(_pair(id, "tool_search_tool_bm25", _REFERENCES)),
        st.just([server_use(id, "web_search")]),
        st.booleans().map(lambda failed: [mcp_use(id), mcp_result(id, "one", failed)]),
        st.just([{"type": "compaction", "content": "so far"}]),
        st.just([{"type": "container_upload", "file_id": "file_1"}]),
    )


def _numbered(count: int) -> st.SearchStrategy[list[Json]]:
    groups = st.tuples(*(_groups(n) for n in range(count)))
    return groups.map(lambda made: [block for group in made for block in group])


ANSWERS = st.integers(1, 5).flatmap(_numbered)
"""The content of a message, as the API answers it."""
