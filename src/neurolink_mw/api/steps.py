"""The model that a turn's steps ask: a name, a pipeline or a model, with the middlewares of the call around it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias

from ..config import Pipeline
from ..errors import ConfigError
from ..pipeline import Member, Use, wrap_model
from ..protocol import LanguageModel

Model: TypeAlias = "str | LanguageModel | Pipeline"
Members: TypeAlias = "Sequence[Member | Use]"


@dataclass(frozen=True)
class Steps:
    """What the steps of a turn ask. around: puts the same around another model, which `prepare_step` may choose.
    lasting: it is not made for this call alone."""

    model: LanguageModel
    around: Callable[[LanguageModel], LanguageModel]
    lasting: bool = True


def model_of_steps(model: Model, middlewares: Members) -> AbstractAsyncContextManager[Steps]:
    """The model, ready to be asked. A name (`provider:model-id`) is looked up for this call, with the preset `basic`
    around it, and what was opened for it is closed; a pipeline stands for the model that it names; a model is used as
    it is. ConfigError for anything else."""
    require_members("middlewares", middlewares)
    if isinstance(model, str):
        return _opened(model, middlewares)
    if isinstance(model, Pipeline):
        inner = model

        def around(bare: LanguageModel) -> LanguageModel:
            return CHAINS.around(inner.wrap(bare), middlewares)

        return nullcontext(Steps(CHAINS.around(model.model, middlewares), around))
    return nullcontext(Steps(CHAINS.around(model, middlewares), lambda bare: CHAINS.around(bare, middlewares)))


@asynccontextmanager
async def _opened(model: str, middlewares: Members) -> AsyncIterator[Steps]:
    async with Pipeline.from_config({"model": model, "preset": "basic"}, members=middlewares) as pipeline:
        yield Steps(pipeline.model, pipeline.wrap, lasting=False)


def require_members(argument: str, members: object) -> None:
    """ConfigError for an argument that is no list of members."""
    if isinstance(members, (tuple, list)):  # nearly always, and far cheaper to see
        return
    if isinstance(members, Member | Use) or not isinstance(members, Sequence):
        raise ConfigError(f"{argument} is a list of middlewares, not {type(members).__name__}: [{argument[:-1]}]")


class _Chains:
    """The chains that were built last. Building one costs far more than a call through it, and callers tend to give
    the same model and the same middlewares call after call. Known by identity: two members that are equal may have
    state of their own."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        # What a chain is made of is kept with it, so that no other object can get its identity.
        self._chains: OrderedDict[tuple[int, ...], tuple[tuple[object, ...], LanguageModel]] = OrderedDict()

    def around(
        self,
        model: LanguageModel,
        members: Members,
        inner: Callable[[LanguageModel], LanguageModel] = lambda model: model,
    ) -> LanguageModel:
        """The members around a model, or around what `inner` makes of it."""
        if not members:
            return model
        parts = (inner, model, *members)
        key = tuple(map(id, parts))
        with self._lock:
            known = self._chains.get(key)
            if known is not None:
                self._chains.move_to_end(key)
                return known[1]
        chain = wrap_model(inner(model), members)
        with self._lock:
            self._chains[key] = (parts, chain)
            if len(self._chains) > self._most:
                self._chains.popitem(last=False)
        return chain


CHAINS = _Chains(most=16)
