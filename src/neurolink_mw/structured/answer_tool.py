"""A JSON answer that comes as a call of a tool: shown as the answer's text, in whole answers and in streams alike.

1. The first call of that tool is the answer: its input becomes the text, taken out of a wrapped root.
2. Texts beside calls for the caller's tools, or beside the answer, are left out. Where none of these was called, the
   texts are the answer.
3. Calls for the caller's tools beside the answer are left out and named in `unexecuted`.
4. Further calls of the answer's tool are dropped. One that was cut is the answer still, as far as it came.
5. What the provider ran itself stays, as do reasoning, sources and files. Nothing changes its place: providers want
   reasoning back where it stood.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..protocol import (
    Content,
    StreamPart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolApprovalRequest,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from .answer_text import AnswerText, answer_text


class AnswerTool(NamedTuple):
    """name: of the tool that carries the answer. key: where in its input the answer is (`Wrapped.key`); None: it is the
    input itself."""

    name: str
    key: str | None = None

    def is_called_by(self, call: ToolCall | ToolInputStart) -> bool:
        """Whether a call is the answer; not so one that the provider runs itself."""
        return call.tool_name == self.name and not call.provider_executed


class AnswerContent(NamedTuple):
    """content: without the answer's tool. answered: that was called. unexecuted: the names of the caller's tools that
    were called beside it, one for each call."""

    content: tuple[Content, ...]
    answered: bool
    unexecuted: tuple[str, ...] = ()

    @property
    def has_calls(self) -> bool:
        """Whether calls for the caller's tools are in the content."""
        return any(isinstance(item, ToolCall) and not item.provider_executed for item in self.content)


def answer_from_content(content: Iterable[Content], answer: AnswerTool, *, whole: bool = True) -> AnswerContent:
    """The content of an answer as the caller sees it. A stream of the same comes to the same by `AnswerParts`.

    whole: the message came to its end. Of one that was cut nobody runs the calls, so the texts beside them stay.
    """
    items = tuple(content)
    calls = [item for item in items if isinstance(item, ToolCall) and not item.provider_executed]
    said = next((call for call in calls if answer.is_called_by(call)), None)
    if said is None:
        hides = whole and bool(calls)
        return AnswerContent(tuple(item for item in items if not (hides and isinstance(item, Text))), False)
    ids = {call.tool_call_id for call in calls}
    shown: list[Content] = []
    for item in items:
        if item is said:
            shown.append(Text(answer_text(said.input, answer.key)))
        elif not isinstance(item, Text) and not _belongs(item, ids):
            shown.append(item)
    names = tuple(call.tool_name for call in calls if not answer.is_called_by(call))
    return AnswerContent(tuple(shown), True, names)


class AnswerParts:
    """The parts of a stream as the caller sees them: `feed(parts)` for what each event made, then `end()`, before the
    finish is made and after every open block was closed.

    The answer is shown while it comes. Texts, and calls for the caller's tools, are held until the end, or until the
    answer begins, which drops them. What comes behind something that is held waits with it, so that all keep their
    order; until then everything else passes at once. Blocks may interleave.
    """

    def __init__(self, answer: AnswerTool) -> None:
        self.answered = False
        self._answer = answer
        self._calls: dict[str, str] = {}  # of the caller's tools: names by ids, as they began
        self._whole: set[str] = set()  # those of them that came to their end
        self._held: list[StreamPart] = []
        self._dropped: set[str] = set()  # ids of further calls of the answer's tool
        self._id: str | None = None  # of the answer's call, until that has ended
        self._text_id = ""
        self._text = AnswerText(answer.key)
        self._begun = False  # the answer has said something

    @property
    def has_calls(self) -> bool:
        """Whether calls for the caller's tools are passed on, so that they are to be run."""
        return bool(self._whole) and not self.answered

    @property
    def unexecuted(self) -> tuple[str, ...]:
        """The names of the caller's tools that were called beside the answer, one for each call."""
        if not self.answered:
            return ()
        return tuple(name for id, name in self._calls.items() if id in self._whole)

    def feed(self, parts: Iterable[StreamPart], *, text_id: str | None = None) -> list[StreamPart]:
        """What of these parts may leave now.

        text_id: the id of the answer's text, should it begin in these parts; without it, that of the tool's call.
        """
        out: list[StreamPart] = []
        for part in parts:
            if part.__class__ is ToolInputDelta and part.id == self._id:
                self._say(part.delta, out)
            elif isinstance(part, ToolInputStart):
                self._start(part, text_id, out)
            elif isinstance(part, ToolCall):
                self._call(part, text_id, out)
            elif isinstance(part, TextStart | TextDelta | TextEnd) or self._is_of_a_call(part):
                self._hold(part)
            elif not (isinstance(part, ToolInputEnd) and part.id == self._id):
                self._pass(part, out)
        return out

    def end(self, whole: bool = True) -> list[StreamPart]:
        """The message has ended. Returns what was held and is to be shown, and closes an answer that was cut.

        whole: it came to its end. Of one that was cut nobody runs the calls, so the texts beside them are shown too.
        """
        out = self._close() if self._id is not None else []
        held: Sequence[StreamPart] = self._held
        self._held = []
        if whole and self.has_calls:
            held = [part for part in held if not isinstance(part, TextStart | TextDelta | TextEnd)]
        return [*out, *held]

    def _start(self, part: ToolInputStart, text_id: str | None, out: list[StreamPart]) -> None:
        if part.provider_executed:
            self._pass(part, out)
        elif not self._answer.is_called_by(part):
            self._calls[part.id] = part.tool_name
            self._hold(part)
        elif self.answered:
            self._dropped.add(part.id)
        else:
            self._begin(part.id, text_id, out)

    def _call(self, part: ToolCall, text_id: str | None, out: list[StreamPart]) -> None:
        id = part.tool_call_id
        if part.provider_executed:
            self._pass(part, out)
        elif not self._answer.is_called_by(part):
            self._calls.setdefault(id, part.tool_name)
            self._whole.add(id)
            self._hold(part)
        elif id == self._id or not self.answered:
            if id != self._id:  # a call without its input's parts
                self._begin(id, text_id, out)
            if not self._begun:
                self._say(part.input, out)
            out.extend(self._close())

    def _is_of_a_call(self, part: StreamPart) -> bool:
        """Whether a part belongs to a call for the caller, or to one that was dropped."""
        if isinstance(part, ToolInputDelta | ToolInputEnd):
            return part.id in self._calls or (part.id in self._dropped and part.id != self._id)
        return isinstance(part, ToolApprovalRequest) and (
            part.tool_call_id in self._calls or part.tool_call_id in self._dropped
        )

    def _pass(self, part: StreamPart, out: list[StreamPart]) -> None:
        (self._held if self._held else out).append(part)

    def _begin(self, id: str, text_id: str | None, out: list[StreamPart]) -> None:
        self.answered = True
        out.extend(part for part in self._held if not self._is_left_out(part))
        self._held.clear()
        self._id = id
        self._dropped.add(id)
        self._text_id = id if text_id is None else text_id
        out.append(TextStart(self._text_id))

    def _say(self, piece: str, out: list[StreamPart]) -> None:
        self._begun = self._begun or bool(piece)
        if text := self._text.feed(piece):
            out.append(TextDelta(self._text_id, text))

    def _close(self) -> list[StreamPart]:
        self._id = None
        rest = self._text.finish()
        end = TextEnd(self._text_id)
        return [TextDelta(self._text_id, rest), end] if rest else [end]

    def _is_left_out(self, part: StreamPart) -> bool:
        """Whether it goes when the answer comes."""
        if isinstance(part, ToolInputStart | ToolCall):
            return not part.provider_executed
        return isinstance(part, TextStart | TextDelta | TextEnd) or self._is_of_a_call(part)

    def _hold(self, part: StreamPart) -> None:
        if not self.answered:
            self._held.append(part)


def _belongs(item: Content, ids: set[str]) -> bool:
    """Whether it is one of those calls, or asks for its approval."""
    if isinstance(item, ToolCall):
        return not item.provider_executed
    return isinstance(item, ToolApprovalRequest) and item.tool_call_id in ids
