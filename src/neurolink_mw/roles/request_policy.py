"""A policy over requests: may this be asked?"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import ClassVar

from ..pipeline import Effect, Middleware, OnError, Rules, Stage
from ..pipeline.mistake import Mistake
from ..protocol import CallOptions, Kind, LanguageModel, Message, TextPart, UserMessage
from .role import Adapter, Role, as_verdict, asking
from .verdict import ACTIONS, Verdict
from .views import Request


class RequestPolicy(Role):
    """Judges each request before it goes further in.

        class OfficeHours(RequestPolicy):
            def check(self, request):
                return allow() if 8 <= hour() < 18 else deny("closed", "Please come back tomorrow.")

    `check` is a function or a coroutine function. A policy that fails denies, unless its place says otherwise.
    `replace(text)` rewrites the one text that the user wrote; `replace(options)` the whole request.
    """

    stage: ClassVar[int] = Stage.GUARD
    answers: ClassVar[frozenset[str]] = frozenset({"check"})
    reads: ClassVar[frozenset[Effect]] = frozenset({"prompt", "tools", "params", "metadata"})
    writes: ClassVar[frozenset[Effect]] = frozenset({"prompt", "tools", "params", "metadata"})
    judges: ClassVar[frozenset[Effect]] = frozenset({"prompt"})
    default_on_error: ClassVar[OnError] = "deny"

    def check(self, request: Request) -> Verdict | Awaitable[Verdict]:
        """`allow()`, `deny(code, message)`, `replace(text or options)` or `flag(code)`."""
        raise NotImplementedError

    def as_middleware(self, rules: Rules) -> Middleware:
        return _RequestAdapter(self, rules)


class _RequestAdapter(Adapter[RequestPolicy]):
    def __init__(self, role: RequestPolicy, rules: Rules) -> None:
        super().__init__(role, rules)
        self._check = asking(role, role.check, RequestPolicy, rules)

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        request = Request(options, kind, model.provider, model.model_id)
        verdict = as_verdict(self.id, await self._check(request))
        if verdict.action == "allow":
            return options
        if verdict.action == "deny" and not self.shadow:
            raise self.denial(options.context, verdict, "request")
        changed = self._changed(options, verdict) if verdict.action == "replace" else options
        self.note(options.context, ACTIONS[verdict.action], verdict.code, "request")
        return options if self.shadow else changed

    def _changed(self, options: CallOptions, verdict: Verdict) -> CallOptions:
        if isinstance(verdict.replacement, CallOptions):
            return verdict.replacement
        if not isinstance(verdict.replacement, str):
            raise Mistake(
                f"{self.id}.check replaced a request with {type(verdict.replacement).__name__}: give a text or options"
            )
        texts = [
            (at, message, index)
            for at, message in enumerate(options.prompt)
            if isinstance(message, UserMessage)
            for index, part in enumerate(message.content)
            if isinstance(part, TextPart)
        ]
        if len(texts) != 1:
            raise Mistake(
                f"{self.id}.check replaced the user's text, and this prompt has {len(texts)} of them: give "
                f"replace(options) with the whole request"
            )
        at, message, index = texts[0]
        content = list(message.content)
        content[index] = content[index].replace(text=verdict.replacement)
        prompt: list[Message] = list(options.prompt)
        prompt[at] = message.replace(content=content)
        return options.replace(prompt=prompt)
