"""The input of a call: JSON text that a model wrote, which may be no JSON, or not what the tool takes."""

from __future__ import annotations

from collections.abc import Sequence

import pydantic_core
from pydantic import ValidationError

from ..protocol import JSON, ToolCall
from .tool import Tool

_LISTED = 10
_NOTHING = "{}"


class InvalidInput(Exception):
    """The input cannot be used. The message is for the model."""


def read_input(tool: Tool, call: ToolCall) -> object:
    """The input of a call as the tool takes it. Raises InvalidInput with what is wrong, in words that a model can act
    on: an input that is not understood is never taken for an empty one."""
    text = _written(call.input)
    value = _parsed(text)
    problems = tool.checker.problems(value, root="input")
    if not problems:
        try:
            return tool.convert(value, text)
        except ValidationError as error:  # what no schema says, such as a model's own validators
            problems = tuple(f"{'.'.join(map(str, one['loc'])) or 'input'}: {one['msg']}" for one in error.errors())
        except Exception as error:  # a validator that fails itself
            problems = (f"input: cannot be read: {type(error).__name__}",)
    raise InvalidInput(_listed(tool.name, problems))


def parsed_or_text(text: str) -> JSON:
    """The input for reports and for the conversation: parsed where it is JSON, else as it was written."""
    try:
        return _parsed(_written(text))
    except InvalidInput:
        return text


def _written(text: object) -> str:
    """No text at all is how several models write an input that has nothing in it. A model of somebody's own may give
    the value itself."""
    if not isinstance(text, str):
        return pydantic_core.to_json(text, fallback=str).decode()
    return text if text.strip() else _NOTHING


def _parsed(text: str) -> JSON:
    try:
        # Unlike orjson, it does not round long integers, such as ids.
        value: JSON = pydantic_core.from_json(text.encode(), allow_inf_nan=False)
    except ValueError as error:
        words = "it is not valid Unicode" if isinstance(error, UnicodeError) else str(error)
        raise InvalidInput(
            f"The input is not valid JSON ({words}). Call the tool again with one JSON object."
        ) from None
    return value


def _listed(name: str, problems: Sequence[str]) -> str:
    shown = "\n".join(f"- {problem}" for problem in problems[:_LISTED])
    more = len(problems) - _LISTED
    rest = f"\n- and {more} more" if more > 0 else ""
    return f"The input does not fit the schema of {name}:\n{shown}{rest}"
