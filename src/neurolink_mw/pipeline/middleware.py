"""The contract of a middleware: a model wrapper with a name and a place, and the five hooks it may fill in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import ConfigError
from ..protocol import (
    CallOptions,
    DecideOptions,
    DecideResult,
    DecisionModel,
    GenerateResult,
    Kind,
    LanguageModel,
    StreamResult,
    SupportedUrls,
    ToolCall,
    ToolOutcome,
    ToolRunner,
    supported_urls,
)
from .hook_checks import check_hooks
from .wording import did_you_mean

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from .build import BuildContext

Effect: TypeAlias = Literal["prompt", "tools", "params", "output", "metadata"]


class Stage(IntEnum):
    """The usual places, from the outside in. Any number may stand between two of them."""

    EDGE = 1400
    OBSERVE = 1300
    AUTH = 1200
    NORMALIZE = 1100
    REDACT = 1000
    GUARD = 900
    CACHE = 800
    VALIDATE = 700
    BUDGET = 600
    FALLBACK = 500
    RETRY = 400
    LIMIT = 300
    ADAPT = 200
    PROVIDER = 100


class MiddlewareConfig(BaseModel):
    """Base of every middleware's `Config`: an unknown option is an error, and neither errors nor `repr` quote a text,
    since it may be a secret."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        for name, value in super().__repr_args__():
            yield name, value if value is None or isinstance(value, bool | int | float) else _Hidden(value)


class _Hidden:
    def __init__(self, value: object) -> None:
        self._kind = type(value).__name__

    def __repr__(self) -> str:
        return f"<{self._kind}>"


class Middleware:
    """A member of a pipeline. Every hook is optional, and one that is not overridden costs nothing.

    `model` is always the next model in, and `options` are already transformed by this middleware; call the model
    once, several times, with other options, or not at all (then say so with `may_answer`).

        class Timing(Middleware):
            stage = Stage.OBSERVE

            async def wrap_generate(self, model, options):
                started = time.perf_counter()
                result = await model.do_generate(options)
                print(time.perf_counter() - started)
                return result

    id: its name in configurations and reports; the class name in snake case unless set. stage: its usual place.
    before / after: ids that it stands outside of / inside of, where they are present. reads / writes: what it looks
    at and changes. needs_scope: that its hooks use what only a scope offers (`options.context` and its `at_end`);
    None finds out by whether the class's own methods mention `context`.
    """

    id: ClassVar[str] = ""
    stage: ClassVar[int] = Stage.NORMALIZE
    before: ClassVar[Sequence[str]] = ()
    after: ClassVar[Sequence[str]] = ()
    Config: ClassVar[type[BaseModel]] = MiddlewareConfig
    reads: ClassVar[frozenset[Effect]] = frozenset()
    writes: ClassVar[frozenset[Effect]] = frozenset()
    may_answer: ClassVar[bool] = False
    sees_denials: ClassVar[bool] = False
    needs_scope: ClassVar[bool | None] = None

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "id" not in cls.__dict__:
            cls.id = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower().strip("_")
        check_hooks(cls, Middleware)
        for name in ("before", "after"):
            if isinstance(getattr(cls, name), str):
                raise ConfigError(f"{cls.__name__}.{name} is a list of ids, not one string")
        if isinstance(cls.stage, bool) or not isinstance(cls.stage, int):
            raise ConfigError(f"{cls.__name__}.stage is a Stage or a whole number, not {type(cls.stage).__name__}")
        if not (isinstance(cls.Config, type) and issubclass(cls.Config, BaseModel)):
            raise ConfigError(f"{cls.__name__}.Config is a pydantic model: derive it from MiddlewareConfig")
        if cls.Config.model_config.get("extra") != "forbid":
            raise ConfigError(
                f"{cls.__name__}.Config must refuse unknown options, or a misspelt one is silently ignored: "
                f"derive it from MiddlewareConfig"
            )

    def __init__(self, config: BaseModel | None = None, **values: object) -> None:
        """From a `Config`, or from its values: `Caching(store="memory:", ttl=60)`. ConfigError names a bad option."""
        if config is None:
            config = make_config(type(self), values)
        elif values or not isinstance(config, self.Config):
            raise ConfigError(f"{type(self).__name__} takes one {self.Config.__qualname__}, or its values by name")
        self.config = config

    def bind(self, build: BuildContext) -> None:
        """Called once for each chain that is built: resolve models and stores, ask for outcomes."""

    async def open(self, tasks: TaskGroup) -> None:
        """Called by `async with pipeline:`, inner members first. Background work runs in `tasks`."""

    async def aclose(self) -> None:
        """Called when the pipeline closes, outer members first."""

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        """The request as it goes on from here. Runs once each time a call enters this layer."""
        return options

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await model.do_generate(options)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return await model.do_stream(options)

    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        return await tool.run(call)

    async def wrap_decide(self, model: DecisionModel, options: DecideOptions) -> DecideResult:
        return await model.do_decide(options)

    def override_provider(self, model: LanguageModel) -> str:
        """The provider that models further out show. Asked once, at build."""
        return model.provider

    def override_model_id(self, model: LanguageModel) -> str:
        """The model id that models further out show. Asked once, at build."""
        return model.model_id

    def override_supported_urls(self, model: LanguageModel) -> SupportedUrls:
        """The addresses that models further out claim to read. Asked once, at build."""
        return supported_urls(model)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r})"


def overrides(member: Middleware, name: str) -> bool:
    """Whether a member fills in a hook, in its class or on the instance."""
    own = getattr(member, name)
    return getattr(own, "__func__", own) is not getattr(Middleware, name)


def make_config(cls: type[Middleware], values: object, *, where: str = "") -> BaseModel:
    """The typed config of a middleware. ConfigError names the option and what is allowed, never the value."""
    try:
        return cls.Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(describe_invalid(error, where or cls.__name__, cls.Config)) from None


def describe_invalid(error: ValidationError, where: str, model: type[BaseModel]) -> str:
    """What is wrong with a config, in one sentence a fault: the place, the fault, what is allowed."""
    faults = []
    for fault in error.errors(include_url=False, include_context=False):
        place = ".".join(str(step) for step in (where, *fault["loc"]))
        if fault["type"] == "extra_forbidden":
            name = str(fault["loc"][-1])
            allowed = sorted(model.model_fields) if len(fault["loc"]) == 1 else []
            faults.append(f"{place}: there is no such option{did_you_mean(name, allowed)}")
        else:
            said = _without_texts(fault["msg"], fault["input"])
            faults.append(f"{place}: {said[:1].lower()}{said[1:]}")
    return "; ".join(faults)


def _without_texts(message: str, given: object) -> str:
    """A message in which no text of the input stands: a validator of a plugin may quote what it refuses."""
    if isinstance(given, str):
        return message.replace(given, "...") if len(given) > 2 else message
    inner = given.values() if isinstance(given, Mapping) else given if isinstance(given, list | tuple | set) else ()
    for item in inner:
        message = _without_texts(message, item)
    return message
