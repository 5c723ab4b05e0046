"""A refusal further in is final: whoever stands further out passes it on."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ...pipeline import Middleware
from ...protocol import CallOptions, GenerateResult, LanguageModel, PartStream, StreamPart, StreamResult, TextDelta
from .material import saying_in
from .plain import KINDS
from .subject import Subject
from .wording import require

_PIECES = ("Hel", "lo, ", "world.")


class _Denies(Middleware):
    """Refuses every call: before the model is asked, or after the first piece of its answer."""

    id = "contract_denies"
    stage = 0  # as far in as it goes
    needs_scope = True

    def __init__(self, *, at_once: bool) -> None:
        super().__init__()
        self.asked = False
        self._at_once = at_once

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        self.asked = True
        if not self._at_once:
            await model.do_generate(options)
        raise options.context.deny("contract", "Not that.")

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        self.asked = True
        if self._at_once:
            raise options.context.deny("contract", "Not that.")

        async def denied(stream: PartStream) -> AsyncIterator[StreamPart]:
            async for part in stream:
                yield part
                if isinstance(part, TextDelta):
                    raise options.context.deny("contract", "Not that.")

        return (await model.do_stream(options)).through(denied)


async def check_a_refusal_further_in_comes_out(subject: Subject) -> None:
    """What sees denials may answer in their place."""
    if getattr(subject.factory(), "sees_denials", False):
        return
    for kind in KINDS:
        for at_once in (True, False):
            denies = _Denies(at_once=at_once)
            async with subject.fresh(saying_in(*_PIECES), inner=[denies]) as trial:
                seen = await trial.ask(kind, subject.options)
            if not denies.asked:
                continue
            when = "before the model is asked" if at_once else "when the model has begun to answer"
            fed = f"do_{kind}, and a member further in refuses the call {when}"
            require(
                seen.denied and len(seen.outcomes) == 1,
                f"{fed}: the call ends as {[outcome.status for outcome in seen.outcomes]}, with {seen}. Ask for the "
                f"answer with the options that you got, or options.replace(...) of them; catch Exception and never "
                f"BaseException; what may answer in place of a refusal says sees_denials = True",
            )
            came = seen.answer
            require(
                seen.raised is None and came is not None and came.finish_reason.unified == "content-filter",
                f"{fed}: what its caller gets is {seen.raised or seen}, and no refusal. Let the refusal pass",
            )
