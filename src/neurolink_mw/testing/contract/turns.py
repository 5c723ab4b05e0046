"""Around a turn and around its steps: streamed or not, the same tools run and the same is said; and what marks the
turn's own calls stays, by which others know them."""

from __future__ import annotations

from collections.abc import Sequence

from ...pipeline.marks import MARK
from ...protocol import GenerateResult, ToolCall, ToolResult, to_json
from .agreement import said_in
from .miniature import CALL, PLACES, Turned, ask_turn, calling
from .plain import KINDS
from .subject import Subject
from .wording import require, show, show_answer, show_error

_WHERE = {"steps": "around the steps of a turn", "turn": "around a turn"}


async def check_a_turn_is_the_same_generated_and_streamed(subject: Subject) -> None:
    for where in PLACES:
        for calls in _scripts(subject):
            generated, streamed = [await ask_turn(subject, where, kind, calling(*calls)) for kind in KINDS]
            fed = f"{_WHERE[where]}, and the model calls {', '.join(show(call.input) for call in calls)}"
            require(
                [call.input for call in generated.ran] == [call.input for call in streamed.ran],
                f"{fed}: the tool ran with {_inputs(generated)} generated, and with {_inputs(streamed)} streamed. "
                f"Judge and rewrite tool calls in both, wrap_generate and wrap_stream, or where they run, in wrap_tool",
            )
            if generated.raised is not None or streamed.raised is not None:
                require(
                    type(generated.raised) is type(streamed.raised),
                    f"{fed}: generated it ends with {show_error(generated.raised)}, streamed with "
                    f"{show_error(streamed.raised)}. Decide alike in both",
                )
                continue
            assert generated.answer is not None
            assert streamed.answer is not None
            require(
                _said(generated.answer) == _said(streamed.answer),
                f"{fed}: generated it says {show_answer(generated.answer)}; streamed {show_answer(streamed.answer)}. "
                f"Do the same to a whole answer and to its parts",
            )


async def check_the_marks_of_a_turn_are_kept(subject: Subject) -> None:
    for kind in KINDS:
        seen = await ask_turn(subject, "turn", kind, calling(CALL))
        for one in () if seen.answer is None else seen.answer.content:
            if isinstance(one, ToolCall | ToolResult):
                marked = MARK in (one.provider_metadata or {})
                require(
                    marked and (isinstance(one, ToolResult) or one.provider_executed is True),
                    f"do_{kind}, around a turn: its {one.type} of {show(one.tool_name)} comes out without what marks "
                    f"it as one that the turn runs itself, so that somebody may run it again. Change it with "
                    f"one.replace(...), which keeps the rest",
                )


def _scripts(subject: Subject) -> Sequence[tuple[ToolCall, ...]]:
    """Calls that the model may make: the usual one, two at once, and those of the answers that the author gave."""
    given = [tuple(call for call in answer.tool_calls if not call.provider_executed) for answer in subject.answers]
    other = CALL.replace(tool_call_id="call-2", input='{"word": "ox"}')
    return [(CALL,), (CALL, other), *(calls for calls in given if calls)]


def _inputs(seen: Turned) -> str:
    return ", ".join(show(call.input) for call in seen.ran) or "nothing"


def _said(answer: GenerateResult) -> object:
    """What is said, wherever it stands: calls of a turn may overtake text that is held back."""
    tools = [one for one in answer.content if isinstance(one, ToolCall | ToolResult)]
    rest = answer.replace(content=tuple(one for one in answer.content if not isinstance(one, ToolCall | ToolResult)))
    return said_in(rest), sorted(str(to_json(one)) for one in tools), answer.finish_reason
