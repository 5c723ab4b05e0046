"""A tool from a typed function: its signature is the schema, its docstring the description."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from inspect import Parameter
from typing import Annotated, Any, get_args, get_type_hints, overload

import docstring_parser
from docstring_parser import Docstring
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from ..errors import ConfigError
from ..protocol import JSONObject
from .detached import is_async
from .schema import first_line, schema_of
from .tool import NeedsApproval, Tool, ToolContext, refuse_generator


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    retries: int = 0,
    retry_delay: float = 0.5,
    needs_approval: NeedsApproval = False,
    strict: bool | None = None,
    input_examples: Sequence[JSONObject] | None = None,
    provider_options: JSONObject | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(function: Callable[..., Any] | None = None, /, **settings: Any) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """A `Tool` from a function, as a decorator with or without settings.

        @tool
        async def weather(city: str, days: int = 1) -> str:
            \"\"\"The weather of a city.

            Args:
                city: Its name, in English.
            \"\"\"

    The name, the docstring, and the parameters with their types (pydantic's, `Annotated` with `Field` included),
    defaults and descriptions (Google, NumPy or Sphinx style) are what the model is told. Input is validated and
    converted before the function runs. A parameter of the type `ToolContext` gets the call's context and is not shown;
    neither is what a `partial` has bound. Settings are those of `Tool`; `needs_approval` may be a function of the
    values, a dict by the parameters' names. ConfigError for a signature that no model can be told of.
    """
    if function is None:
        return partial(_make, **settings)
    if not callable(function) or isinstance(function, Tool):
        raise ConfigError(f"@tool goes on a function, not on {type(function).__name__}: @tool(name=...)")
    return _make(function, **settings)


def _make(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: NeedsApproval = False,
    **settings: Any,
) -> Tool:
    told_of: Any = function.func if isinstance(function, partial) else function
    name = str(name or getattr(told_of, "__name__", type(told_of).__name__))
    doc = docstring_parser.parse(inspect.getdoc(told_of) or "")
    told = "\n\n".join(filter(None, (doc.short_description, doc.long_description)))
    refuse_generator(f"tool {name!r}", function)
    parameters = _Parameters(f"tool {name!r}", function, _described(doc))
    return Tool(
        name=name,
        description=description or told or None,
        input_schema=parameters.model,
        execute=parameters.execute,
        needs_approval=_of_values(needs_approval, parameters) if callable(needs_approval) else needs_approval,
        function=function,
        **settings,
    )


def _of_values(
    needs_approval: Callable[[Any], bool | Awaitable[bool]], parameters: _Parameters
) -> Callable[[BaseModel], bool | Awaitable[bool]]:
    return lambda given: needs_approval(parameters.values(given))


class _Parameters:
    """The parameters of a function, as a model of its input. The model's fields have names of our own and the
    parameters' as aliases, so that a parameter may be called what no field of a model may (`schema`, `_id`)."""

    def __init__(self, where: str, function: Callable[..., Any], described: Mapping[str, str]) -> None:
        self._function = function
        self._fields: list[tuple[Parameter, str | None]] = []  # in order; None for what takes the context
        config = ConfigDict(extra="forbid")
        more: Any = Any
        fields: dict[str, Any] = {}
        for parameter, annotation in _typed(where, function):
            if parameter.kind is Parameter.VAR_POSITIONAL:
                raise ConfigError(f"{where}: *{parameter.name} has no names for its values: take a list instead")
            if parameter.kind is Parameter.VAR_KEYWORD:
                config, more = ConfigDict(extra="allow"), annotation
            elif _is_context(annotation):
                self._fields.append((parameter, None))
            else:
                name = f"p{len(fields)}"
                fields[name] = _field(parameter, annotation, described.get(parameter.name))
                self._fields.append((parameter, name))
        try:
            self.model = _model(config, more, fields, where)
        except Exception as error:  # pydantic's, and whatever a type's own schema hook raises
            culprit = next((one[1].alias for name, one in fields.items() if not _is_sound(name, one)), "**kwargs")
            raise ConfigError(
                f"{where}: the type of {culprit} is none that JSON can carry: {first_line(error)}"
            ) from None
        self.execute = self._execute_async if is_async(function) else self._execute

    def values(self, given: BaseModel) -> dict[str, object]:
        """What the model of the input holds, by the names of the parameters."""
        values = dict(given.model_extra or {})
        return values | {one.name: getattr(given, field) for one, field in self._fields if field is not None}

    def _execute(self, given: BaseModel, context: ToolContext) -> object:
        values = self.values(given)
        # After the others: what a model calls like the context's parameter does not take the context's place.
        values |= {one.name: context for one, field in self._fields if field is None}
        positional = [values.pop(one.name) for one, _ in self._fields if one.kind is Parameter.POSITIONAL_ONLY]
        return self._function(*positional, **values)

    async def _execute_async(self, given: BaseModel, context: ToolContext) -> object:
        return await self._execute(given, context)  # type: ignore[misc]  # the function is async


def _field(parameter: Parameter, annotation: Any, told: str | None) -> tuple[Any, Any]:
    """A field of the model. What `Field` says of it counts more than the docstring."""
    given: dict[str, Any] = {"alias": parameter.name}
    if isinstance(parameter.default, FieldInfo):
        annotation = Annotated[annotation, parameter.default]
    elif parameter.default is not Parameter.empty:
        given["default"] = parameter.default
    if told is not None and FieldInfo.from_annotation(annotation).description is None:
        given["description"] = told
    return annotation, Field(**given)


def _is_context(annotation: Any) -> bool:
    """Also where it is optional, or has notes."""
    return annotation is ToolContext or ToolContext in get_args(annotation)


def _described(doc: Docstring) -> dict[str, str]:
    """What a docstring says of each parameter; NumPy's style has several of one type in one entry."""
    return {
        name.strip(): told.description for told in doc.params if told.description for name in told.arg_name.split(",")
    }


def _model(config: ConfigDict, more: Any, fields: Mapping[str, Any], where: str) -> type[BaseModel]:
    """The model of an input. more: the type of the values of `**kwargs`."""
    body: dict[str, Any] = {"model_config": config, "__module__": __name__}
    if config["extra"] == "allow":
        body["__annotations__"] = {"__pydantic_extra__": dict[str, more]}
    model: type[BaseModel] = create_model("Input", __base__=type("Base", (BaseModel,), body), **fields)
    schema_of(model, where)
    return model


def _is_sound(name: str, field: Any) -> bool:
    with suppress(Exception):
        return bool(_model(ConfigDict(extra="forbid"), Any, {name: field}, ""))
    return False


def _typed(where: str, function: Callable[..., Any]) -> list[tuple[Parameter, Any]]:
    """The parameters that a model fills in, with their types."""
    typed: Any = function.func if isinstance(function, partial) else function
    if not inspect.isroutine(typed):
        typed = typed.__call__
    try:
        signature = inspect.signature(function)
        hints = get_type_hints(typed, include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        remedy = "types stand in the module, and are not imported under TYPE_CHECKING alone"
        raise ConfigError(f"{where}: the types of its parameters cannot be read: {error}: {remedy}") from None
    first = next(iter(signature.parameters), None)
    of_class = "." in getattr(typed, "__qualname__", "").rpartition("<locals>.")[2]
    if first in ("self", "cls") and first not in hints and of_class:
        raise ConfigError(f"{where}: a method has no {first} yet: make the tool of a bound one, tool(thing.method)")
    bound = function.keywords if isinstance(function, partial) else {}  # they may be secrets: the model sees no default
    return [
        (parameter, hints.get(parameter.name, Any))
        for parameter in signature.parameters.values()
        if parameter.name not in bound
    ]
