"""What may stand in a chain: a name, a place, typed options, and what it does to a call, as far as the build looks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import ConfigError
from .rules import OnError, Rules
from .wording import did_you_mean, without_texts

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from .build import BuildContext
    from .middleware import Middleware

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


class Member:
    """Base of all that may stand in a chain: a `Middleware`, or a role, which the host turns into one.

    id: its name in configurations and reports; the class name in snake case unless set. stage: its usual place.
    before / after: ids that it stands outside of / inside of, where they are present. reads / writes: what it looks
    at and changes. judges: what it may refuse a call for. may_answer: it may answer instead of the model.
    default_on_error: what happens when it fails, where its place does not say.
    """

    id: ClassVar[str] = ""
    stage: ClassVar[int] = Stage.NORMALIZE
    before: ClassVar[Sequence[str]] = ()
    after: ClassVar[Sequence[str]] = ()
    Config: ClassVar[type[BaseModel]] = MiddlewareConfig
    reads: ClassVar[frozenset[Effect]] = frozenset()
    writes: ClassVar[frozenset[Effect]] = frozenset()
    judges: ClassVar[frozenset[Effect]] = frozenset()
    may_answer: ClassVar[bool] = False
    default_on_error: ClassVar[OnError] = "raise"

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "id" not in cls.__dict__:
            cls.id = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower().strip("_")
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

    def companions(self) -> Sequence[Member]:
        """What else stands in the chain with it: a member that needs two places has one for the second."""
        return ()

    def as_middleware(self, rules: Rules) -> Middleware:
        """What stands in one chain for it, under the rules of its place. ConfigError where they cannot hold."""
        raise ConfigError(f"{type(self).__name__} is neither a Middleware nor a role: derive it from one of them")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r})"


def has_to_be_opened(member: Member) -> bool:
    """Whether a member does something when its pipeline is opened or closed."""
    return any(getattr(type(member), name) is not getattr(Member, name) for name in ("open", "aclose"))


def make_config(cls: type[Member], values: object, *, where: str = "") -> BaseModel:
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
            said = without_texts(fault["msg"], fault["input"])
            faults.append(f"{place}: {said[:1].lower()}{said[1:]}")
    return "; ".join(faults)
