"""A tool: what the model is told of it, and what runs when the model calls it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import Parameter, isasyncgenfunction, isgeneratorfunction, signature
from typing import Any, TypeAlias

from pydantic import BaseModel

from ..errors import ConfigError
from ..protocol import CallOptions, FunctionTool, JSONObject, ToolCall, ToolExample
from ..structured import SchemaChecker
from .schema import schema_of, takes_objects
from .settings import is_seconds

Execute: TypeAlias = Callable[..., object]
NeedsApproval: TypeAlias = "bool | Callable[[Any], bool | Awaitable[bool]]"

NO_INPUT: JSONObject = {"type": "object", "properties": {}, "additionalProperties": False}
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class ToolError(Exception):
    """Raised by a tool to tell the model why it failed, in its own words. The message is what the model reads; other
    exceptions are told with the name of their type as well. retry: whether another try of the tool may help."""

    def __init__(self, message: str, *, retry: bool = False) -> None:
        super().__init__(message)
        self.retry = retry


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know of the call that it answers. options: those of the step that called it, with the prompt,
    the caller's metadata and the request's context. attempt: from 1."""

    call: ToolCall
    options: CallOptions = field(repr=False)
    attempt: int = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """A tool by hand; `@tool` makes one from a typed function.

        Tool(name="weather", description="The weather of a city.", execute=weather,
             input_schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})

    input_schema: a JSON Schema of the input object, or a pydantic model; None for no input. execute: `execute(input)`
    or `execute(input, context)` with a `ToolContext`; the input is the parsed object, or an instance of the pydantic
    model. It may be async; a sync one runs in a worker thread. It returns text, anything that is JSON, a pydantic
    model, pieces of content such as images, or a `ToolOutput`; what it raises is a result that the model reads. None:
    the tool is declared, and a call of it is answered with an error.

    timeout: seconds for each try; the wait for an approval does not count. retries: further tries after a failure,
    `retry_delay` seconds apart, doubling up to 30. needs_approval: True, or a function of the input. strict,
    input_examples, provider_options: as in `FunctionTool`. ConfigError for what cannot work.
    """

    name: str
    description: str | None = None
    input_schema: JSONObject | type[BaseModel] | None = field(default=None, repr=False)
    execute: Execute | None = field(default=None, repr=False)
    timeout: float | None = None
    retries: int = 0
    retry_delay: float = 0.5
    needs_approval: NeedsApproval = False
    strict: bool | None = None
    input_examples: Sequence[JSONObject] | None = field(default=None, repr=False)
    provider_options: JSONObject | None = field(default=None, repr=False)
    function: Callable[..., Any] | None = field(default=None, repr=False)
    """What calling the tool itself calls, where it was made from a function."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ConfigError(
                f"a tool's name has 1 to 128 letters, digits and any of '_.:-', not {_shown(self.name)}: providers "
                f"refuse others"
            )
        where = f"tool {self.name!r}"
        if self.execute is not None:
            if not callable(self.execute):
                raise ConfigError(f"{where}: execute is a function, not {type(self.execute).__name__}")
            refuse_generator(where, self.execute)
        if not is_seconds(self.timeout):
            raise ConfigError(f"{where}: timeout is a number of seconds above 0, or None for no limit")
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise ConfigError(f"{where}: retries is a whole number from 0 on")
        if self.retry_delay is None or (self.retry_delay != 0 and not is_seconds(self.retry_delay)):
            raise ConfigError(f"{where}: retry_delay is a number of seconds from 0 on")
        if not isinstance(self.needs_approval, bool) and not callable(self.needs_approval):
            raise ConfigError(f"{where}: needs_approval is true, false, or a function of the input")
        _ = self.checker, self.takes_context  # a broken schema is found here, not at the first call
        if not takes_objects(self.schema):
            raise ConfigError(
                f"{where}: input_schema describes no object: the input of a tool is one, put it in a field"
            )

    @cached_property
    def schema(self) -> JSONObject:
        """The JSON Schema that the model gets."""
        given = self.input_schema
        if given is None:
            return NO_INPUT
        if isinstance(given, type) and issubclass(given, BaseModel):
            return schema_of(given, f"tool {self.name!r}: input_schema")
        if not isinstance(given, Mapping):
            raise ConfigError(
                f"tool {self.name!r}: input_schema is a JSON Schema (a mapping) or a pydantic model, not "
                f"{type(given).__name__}"
            )
        return given

    @cached_property
    def checker(self) -> SchemaChecker:
        """What says whether an input is valid."""
        return SchemaChecker(self.schema, where=f"tool {self.name!r}: input_schema")

    @cached_property
    def definition(self) -> FunctionTool:
        """What the model is told."""
        examples = None if self.input_examples is None else tuple(ToolExample(one) for one in self.input_examples)
        return FunctionTool(self.name, self.schema, self.description, examples, self.strict, self.provider_options)

    @cached_property
    def takes_context(self) -> bool:
        """Whether `execute` takes a `ToolContext` beside the input."""
        if self.execute is None:
            return False
        try:
            parameters = signature(self.execute).parameters.values()
        except (TypeError, ValueError):  # a builtin that does not say
            return False
        positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        many = any(one.kind is Parameter.VAR_POSITIONAL for one in parameters)
        required = [one for one in positional if one.default is Parameter.empty]
        named = any(one.kind is Parameter.KEYWORD_ONLY and one.default is Parameter.empty for one in parameters)
        if len(required) > 2 or named or not (positional or many):
            raise ConfigError(
                f"tool {self.name!r}: execute is called as execute(input) or execute(input, context): for a function "
                f"with parameters of its own, use @tool"
            )
        return len(positional) > 1 and (len(required) == 2 or positional[1].name == "context")

    def convert(self, value: object, text: str) -> object:
        """The input as `execute` takes it, from what was read and from the JSON itself. pydantic's ValidationError
        where its model refuses it."""
        schema = self.input_schema
        if isinstance(schema, type):
            return schema.model_validate_json(text)  # a strict model takes a list for a tuple only from JSON
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function behind the tool, as if it were none: `await weather("Oslo")`."""
        behind = self.function or self.execute
        if behind is None:
            raise ConfigError(f"tool {self.name!r} has no execute: there is nothing to call")
        return behind(*args, **kwargs)


def refuse_generator(where: str, function: object) -> None:
    """ConfigError for a function that yields."""
    for one in (function, getattr(function, "__call__", None)):  # noqa: B004
        if isasyncgenfunction(one) or isgeneratorfunction(one):
            raise ConfigError(f"{where}: its function has a `yield` in it: a tool returns its result, so return a list")


def by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Tools by the names that models call them by. ConfigError where two have one name, or one is no tool."""
    named: dict[str, Tool] = {}
    for tool in tools:
        if not isinstance(tool, Tool):
            raise ConfigError(f"tools are Tool(...) or functions with @tool, not {type(tool).__name__}")
        if tool.name in named:
            raise ConfigError(f"two tools have the name {tool.name!r}: a model could not tell them apart")
        named[tool.name] = tool
    return named


def _shown(name: object) -> str:
    return repr(name[:200]) if isinstance(name, str) else type(name).__name__
