"""What of an answer is judged, and what becomes of it: the same for a whole answer and for the parts of a stream."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ..errors import ConfigError
from ..pipeline.marks import entry, with_entry
from ..pipeline.wording import did_you_mean
from ..protocol import JSON, CallContext, Content, FinishReason, GenerateResult, Reasoning, StreamResult, Text, ToolCall
from .verdict import Verdict
from .views import Request, View, ViewKind

Result = TypeVar("Result", GenerateResult, StreamResult)

CHANNELS = ("text", "reasoning", "tool_input")
"""What a policy may see."""


def require_channels(setting: str, given: object, what_for: str) -> None:
    """ConfigError for a setting of a role that does not name some of them."""
    listed = ", ".join(CHANNELS)
    if isinstance(given, str) or not isinstance(given, Collection):
        kind = "one string" if isinstance(given, str) else type(given).__name__
        raise ConfigError(f"{setting} is a list of {listed}, not {kind}")
    for channel in given:
        if channel not in CHANNELS:
            raise ConfigError(f"{setting} cannot name {channel!r}{did_you_mean(str(channel), list(CHANNELS))}")
    if not given:
        raise ConfigError(f"{setting} is empty: {what_for} one of {listed}")


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer says: its joined text, its joined reasoning, and whether it has calls that are judged."""

    text: str = field(repr=False)
    reasoning: str = field(repr=False)
    calls: bool

    @classmethod
    def of(cls, content: Iterable[Content]) -> Said:
        content = tuple(content)
        return cls(
            "".join(one.text for one in content if isinstance(one, Text)),
            "".join(one.text for one in content if isinstance(one, Reasoning)),
            any(is_judged(one) for one in content if isinstance(one, ToolCall)),
        )

    def views(self, sees: Collection[str], request: Request) -> Iterator[View]:
        """The text and the reasoning. An answer that has nothing else to judge is judged by its text, though it is
        empty, so that a policy on what must be said cannot be escaped by silence."""
        judges_reasoning = "reasoning" in sees and self.reasoning != ""
        judges_calls = "tool_input" in sees and self.calls
        if "text" in sees and (self.text or not (judges_reasoning or judges_calls)):
            yield View("text", self.text, request)
        if judges_reasoning:
            yield View("reasoning", self.reasoning, request)


def call_to_judge(call: ToolCall, request: Request) -> View:
    return View("tool_call", call.input, request, tool_call=call)


def is_judged(call: ToolCall) -> bool:
    """Calls of the caller's tools, also where a turn has marked them as run by itself. A provider's own tools ran
    already."""
    mark = entry(call.provider_metadata)
    return (not call.provider_executed or bool(mark)) and "denied" not in mark


def belongs_to_a_turn(call: ToolCall, context: CallContext) -> bool:
    """Whether a turn drives this call, and answers it with "denied" instead of running it."""
    return context.step is not None or bool(entry(call.provider_metadata))


def identity(call: ToolCall) -> tuple[JSON, ...]:
    """What a call of a turn is known by, in the answer and where it is run: its id changes in between."""
    mark = entry(call.provider_metadata)
    return (mark.get("step"), mark.get("id"), call.tool_name, call.input)


def marked_denied(call: ToolCall, verdict: Verdict) -> ToolCall:
    """The call as a turn gets it: it is not run, and the model learns that."""
    denied = {"denied": {"code": verdict.code, "message": verdict.message}}
    return call.replace(provider_metadata=with_entry(call.provider_metadata, denied))


def filtered(reason: FinishReason, code: str) -> FinishReason:
    """How an answer ends that a call was taken out of. After an error the reason stays "error"."""
    return reason if reason.unified == "error" else FinishReason("content-filter", code)


def with_texts(content: Iterable[Content], texts: Mapping[ViewKind, str]) -> list[Content]:
    """The content with all text, or all reasoning, in one block: it stands where the first one stood, else at the end.

    Metadata was made for the old text (signatures, citations, probabilities of its tokens) and goes.
    """
    left = dict(texts)
    out: list[Content] = []
    for one in content:
        kind = _kind_of(one)
        if kind is None or kind not in texts:
            out.append(one)
        elif kind in left:
            out.append(_BLOCKS[kind](left.pop(kind)))
    return out + [_BLOCKS[kind](text) for kind, text in left.items() if text]


_BLOCKS: dict[ViewKind, type[Text | Reasoning]] = {"text": Text, "reasoning": Reasoning}


def _kind_of(one: Content) -> ViewKind | None:
    return "text" if isinstance(one, Text) else "reasoning" if isinstance(one, Reasoning) else None


def without_body(result: Result) -> Result:
    """The provider's own response, kept beside an answer, still says what was taken out of it: it goes too."""
    response = result.response
    if response is None or response.body is None:
        return result
    return result.replace(response=response.replace(body=None))


def without_traces(result: GenerateResult) -> GenerateResult:
    """A changed answer without what still says how it was: the provider's response, and metadata that was made for the
    old text (probabilities of its tokens, a trace of it)."""
    response = result.response
    if response is not None:
        response = response.replace(body=None, extra=None)
    return result.replace(provider_metadata=None, extra=None, response=response)
