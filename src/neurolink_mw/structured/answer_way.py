"""How a JSON answer is asked for, of a model that may have native JSON output, tools of the caller, or both."""

from __future__ import annotations

from typing import Literal, TypeAlias

AnswerWay: TypeAlias = Literal["native", "forced-tool", "final-result", "instruction"]
"""native: the provider's own JSON output. forced-tool: the answer's tool is declared, after the caller's tools where
those stay, and the choice is forced to it. final-result: `final_result` is declared after the caller's tools, the
choice stays as the caller has it (auto where it is not set), and FINAL_RESULT_INSTRUCTION ends the system text.
instruction: the schema in words ends the system text (`append_json_schema_instruction`), nothing is declared, and the
provider warns that nothing but words asks for the form."""


def choose_answer_way(
    *,
    has_tools: bool,
    native: bool,
    native_with_tools: bool,
    can_force: bool = True,
    calls_forbidden: bool = False,
    name_taken: bool = False,
) -> AnswerWay:
    """The way in which a call with a schema gets its JSON answer.

    has_tools: the call declares tools that stay declared, the provider's own among them. native: the model has native
    JSON output; native_with_tools: beside tools too. can_force: a tool may be forced; not so while Claude thinks.
    calls_forbidden: the caller's choice is `none`. name_taken: one of the caller's tools is named `final_result`.

    | tools | native output | a tool may be forced | way |
    |---|---|---|---|
    | none | yes | | native |
    | none | no | yes | forced-tool, the only one |
    | none | no | no | final-result, the only one |
    | some | beside tools | | native |
    | some, one of them named `final_result` | not beside tools | | instruction |
    | some | not beside tools | | final-result |
    | some, choice `none` | not beside tools | yes | forced-tool: forbids the others, and still gets the answer |
    | some, choice `none` | not beside tools | no | instruction |

    A choice of `required`, or of one tool, stays beside final-result: the answer comes in a later step.
    """
    if native_with_tools if has_tools else native:
        return "native"
    if not has_tools:
        return "forced-tool" if can_force else "final-result"
    if name_taken:
        return "instruction"
    if calls_forbidden:
        return "forced-tool" if can_force else "instruction"
    return "final-result"
