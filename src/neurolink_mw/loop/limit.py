"""What a turn answers that has come to the limit of its steps."""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol import GenerateResult, Text
from .step import StepResult


def gathered(steps: Sequence[StepResult]) -> str:
    """What the model has said so far: in its last step, else in all before it."""
    if not steps:
        return ""
    last = steps[-1].text
    return last if last.strip() else "\n\n".join(step.text for step in steps if step.text.strip())


def apology(steps: Sequence[StepResult], max_steps: int) -> str:
    """What is said where the model has said nothing."""
    calls = sum(len(step.tool_results) for step in steps)
    return (
        f"I made {calls} tool call{'' if calls == 1 else 's'} and came to the limit of {max_steps} "
        f"step{'' if max_steps == 1 else 's'} before I had an answer. Please ask for less at once, or in smaller parts."
    )


def with_text(answer: GenerateResult, text: str) -> GenerateResult:
    """The last answer, saying what was gathered."""
    if answer.text == text:
        return answer
    return answer.replace(content=(*(one for one in answer.content if not isinstance(one, Text)), Text(text)))
