"""The contract of a middleware: a model wrapper with a name and a place, and the five hooks it may fill in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import ClassVar

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
from .hook_checks import HOOKS, check_hooks
from .member import Effect, Member, MiddlewareConfig, Stage
from .rules import Rules

__all__ = ["Effect", "Middleware", "MiddlewareConfig", "Stage", "is_sync", "overrides"]


class Middleware(Member):
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

    sees_denials: what is denied further in reaches its hooks as a `PolicyDenied` that it may catch, as a fallback
    does. needs_scope: that its hooks use what only a scope offers (`options.context` with its `at_end` and `deny`);
    None finds out by whether the class's own methods mention `context`. See `Member` for the rest.
    """

    sees_denials: ClassVar[bool] = False
    needs_scope: ClassVar[bool | None] = None
    handles_failures: ClassVar[bool] = False  # an adapter that does itself what the rules of its place say
    about: str | None = None  # what `explain` adds of it; an adapter says how its role treats streams

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        check_hooks(cls, Middleware)

    def as_middleware(self, rules: Rules) -> Middleware:
        """Itself. ConfigError for rules that only roles can have, or that would have nothing to do here."""
        if rules.mode == "shadow":
            raise ConfigError(
                f'{self.id}: mode = "shadow" is for roles; a full middleware changes a call in ways that nobody can '
                f'take back: use "enforce" or "off"'
            )
        hooks = [hook for hook in HOOKS if overrides(self, hook)]
        if rules.owned and not hooks:
            raise ConfigError(
                f"{self.id}: on_error and timeout have nothing to do here: it has no hook, and what it is told of "
                f"outcomes never changes a call"
            )
        if rules.blocking and not any(is_sync(getattr(self, hook)) for hook in hooks):
            raise ConfigError(f"{self.id}: blocking moves sync hooks to a worker thread, and all its hooks are async")
        return self

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        """The request as it goes on from here. Runs once each time a call enters this layer."""
        return options

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        """Around a whole answer. `model` is the next one in."""
        return await model.do_generate(options)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        """Around an answer in parts. Derive a stream from the inner one, and closing it closes both."""
        return await model.do_stream(options)

    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        """Around one execution of a tool."""
        return await tool.run(call)

    async def wrap_decide(self, model: DecisionModel, options: DecideOptions) -> DecideResult:
        """Around one decision."""
        return await model.do_decide(options)

    def judge_tool(self, model: LanguageModel) -> Callable[[ToolRunner, ToolCall], Awaitable[ToolOutcome]] | None:
        """How an adapter of a policy judges a call that no answer of a step brings to it; None for all others. model:
        the next one in, a whole turn perhaps."""
        return None

    def override_provider(self, model: LanguageModel) -> str:
        """The provider that models further out show. Asked once, at build."""
        return model.provider

    def override_model_id(self, model: LanguageModel) -> str:
        """The model id that models further out show. Asked once, at build."""
        return model.model_id

    def override_supported_urls(self, model: LanguageModel) -> SupportedUrls:
        """The addresses that models further out claim to read. Asked once, at build."""
        return supported_urls(model)


def overrides(member: Middleware, name: str) -> bool:
    """Whether a member fills in a hook, in its class or on the instance."""
    own = getattr(member, name)
    return getattr(own, "__func__", own) is not getattr(Middleware, name)


def is_sync(hook: object) -> bool:
    """Whether calling it does its work at once: a plain function, or an object with a plain `__call__`."""
    return not (iscoroutinefunction(hook) or iscoroutinefunction(getattr(hook, "__call__", None)))  # noqa: B004
