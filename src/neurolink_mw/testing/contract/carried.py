"""What a middleware has no business with: it comes out as the model gave it."""

from __future__ import annotations

from ...protocol import Content, GenerateResult, ToolCall, ToolInputStart, UnknownPart
from .material import EVERYTHING
from .plain import KINDS
from .subject import Seen, Subject
from .wording import require, show_answer

_RESPONSE = EVERYTHING.response and EVERYTHING.response.replace(body=None)
_FED = f"the model says {show_answer(EVERYTHING)}"


async def check_parts_of_every_kind_are_passed_on(subject: Subject) -> None:
    """Those of a kind that it does not know, always; others may be left out on purpose, and then in both calls."""
    lost: dict[str, set[str]] = {}
    for kind in KINDS:
        seen = await subject.ask(kind, EVERYTHING)
        if (answer := _untouched(seen)) is None:
            continue
        _require_flags(seen, answer, f"do_{kind}, and {_FED}")
        lost[kind] = _kinds_of(EVERYTHING) - _kinds_of(answer)
    on_purpose = "output" in subject.factory().writes and len(set(map(frozenset, lost.values()))) == 1
    for asked, kinds in lost.items():
        kinds = {name for name in kinds if name in _UNKNOWN or not on_purpose}
        require(
            not kinds,
            f"do_{asked}, and {_FED}: {', '.join(sorted(kinds))} is lost. Pass on what you do not change, whatever it "
            f"is: `if isinstance(part, TextDelta): ...`, and `yield part` for all others",
        )


_UNKNOWN = {item.type for item in EVERYTHING.content if isinstance(item, UnknownPart)}


def _untouched(seen: Seen) -> GenerateResult | None:
    """The answer, where it is that of the one call that was made for it, with no part refused on the way."""
    return seen.answered if len(seen.calls) == 1 and not seen.refused_a_part else None


def _kinds_of(answer: GenerateResult) -> set[str]:
    return {item.type for item in answer.content if item.type != "text"}


def _require_flags(seen: Seen, answer: GenerateResult, fed: str) -> None:
    """Who runs a tool, and who has defined it."""
    expected = {call.tool_call_id: _flags(call) for call in EVERYTHING.tool_calls}
    calls: list[Content | ToolInputStart] = [*answer.content]
    calls += [part for part in seen.parts if isinstance(part, ToolInputStart)]
    for call in calls:
        if isinstance(call, ToolCall | ToolInputStart):
            id = call.tool_call_id if isinstance(call, ToolCall) else call.id
            require(
                _flags(call) == expected.get(id, _flags(call)),
                f"{fed}: the {call.type} of {call.tool_name} comes out with other flags (provider_executed, dynamic). "
                f"They say who runs the tool: change calls with part.replace(...), which keeps what you do not name",
            )


def _flags(call: ToolCall | ToolInputStart) -> tuple[bool, bool]:
    return bool(call.provider_executed), bool(call.dynamic)


async def check_what_stands_beside_the_answer_is_kept(subject: Subject) -> None:
    """Warnings, and what is known of request and response. The response's body may go: it says what was rewritten."""
    for kind in KINDS:
        seen = await subject.ask(kind, EVERYTHING)
        if (answer := _untouched(seen)) is None:
            continue
        fed = f"do_{kind}, and the model answers with a warning, its request and its response"
        whole = "GenerateResult" if kind == "generate" else "StreamResult"
        require(
            all(warning in answer.warnings for warning in EVERYTHING.warnings),
            f"{fed}: the warning is lost. Pass on "
            f"{'GenerateResult.warnings' if kind == 'generate' else 'the stream-start part that you got'}",
        )
        require(
            seen.request == EVERYTHING.request,
            f"{fed}: {whole}.request is lost. Make the new result with result.replace(...) or result.through(...)",
        )
        require(
            seen.response is not None and seen.response.replace(body=None) == _RESPONSE,
            f"{fed}: {whole}.response is lost. Make the new result with result.replace(...) or result.through(...)",
        )
