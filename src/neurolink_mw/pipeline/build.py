"""What a member may ask for when its chain is built."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, TypeAlias

from ..errors import ConfigError
from ..events import Event
from ..protocol import LanguageModel, StreamPart
from .conditions import When

if TYPE_CHECKING:
    from .outcome import Outcome

OnOutcome: TypeAlias = "Callable[[Outcome], Awaitable[None] | None]"
OnPart: TypeAlias = Callable[[StreamPart], None]


@dataclass(frozen=True)
class Listener:
    """Somebody who is told how calls end, and sees the parts that the caller sees. `when`: of which calls."""

    id: str
    on_outcome: OnOutcome | None = None
    on_part: OnPart | None = None
    deadline: float = 5.0
    when: When | None = None


def _drop(event: Event) -> None:
    """Where no plugin listens, events go nowhere."""


def _no_models(name: str) -> LanguageModel:
    raise ConfigError(f"the model {name!r} cannot be looked up by name here: build the chain with a Pipeline")


def _no_stores(url: str) -> object:
    raise ConfigError(f"the store {url!r} cannot be looked up by its address here: build the chain with a Pipeline")


@dataclass(frozen=True)
class Surroundings:
    """What the host of a chain offers: models and stores by name, time, and somebody to tell events; None where no
    plugin listens."""

    model: Callable[[str], LanguageModel] = _no_models
    store: Callable[[str], object] = _no_stores
    clock: Callable[[], float] = time.monotonic
    events: Callable[[Event], None] | None = None


@dataclass(frozen=True)
class BuildContext:
    """Handed to `Middleware.bind`, once for each chain.

    model(name): a model by its configured name. store(url): a store by its address. clock(): seconds, monotonic.
    events(event): tell an event to the plugins. `observe` asks for outcomes and parts of every call of this chain.
    """

    id: str
    surroundings: Surroundings = field(default_factory=Surroundings)
    listeners: list[Listener] = field(default_factory=list)
    when: When | None = None

    def model(self, name: str) -> LanguageModel:
        """A model by its configured name. ConfigError where names cannot be looked up, or this one is unknown."""
        return self.surroundings.model(name)

    def store(self, url: str) -> object:
        """A store by its address. ConfigError as for models."""
        return self.surroundings.store(url)

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds, monotonic."""
        return self.surroundings.clock

    @property
    def events(self) -> Callable[[Event], None]:
        """Tell an event to the plugins that listen."""
        return self.surroundings.events or _drop

    def observe(
        self, on_outcome: OnOutcome | None = None, *, on_part: OnPart | None = None, deadline: float = 5.0
    ) -> None:
        """Be told the outcome of each call, exactly once, and see each part on its way to the caller.

        `on_outcome` may be async; it has `deadline` seconds, so that the caller never waits longer. `on_part` is
        sync. What either raises is logged and changes nothing for the caller. A place with a condition is told of
        the calls that it holds for, as the caller made them.
        """
        for name, fn in (("on_outcome", on_outcome), ("on_part", on_part)):
            if fn is not None and not callable(fn):
                raise ConfigError(f"{self.id}: {name} is a function, not {type(fn).__name__}")
        if iscoroutinefunction(on_part) or iscoroutinefunction(getattr(on_part, "__call__", None)):  # noqa: B004
            raise ConfigError(f"{self.id}: on_part is a sync function, since nothing may delay a part")
        self.listeners.append(Listener(self.id, on_outcome, on_part, deadline, self.when))
