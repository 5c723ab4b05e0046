"""Broken: middlewares that do not do what they say of themselves, or meddle with the account of a call."""

from __future__ import annotations

from neurolink_mw.pipeline import Middleware
from neurolink_mw.protocol import CallOptions, FunctionTool, GenerateResult, Kind, LanguageModel, StreamResult, user

from .kit import Passing, with_text


class Rewords(Middleware):
    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return options.replace(prompt=(user("Be brief."), *options.prompt))


class AddsATool(Middleware):
    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return options.replace(tools=(*(options.tools or ()), FunctionTool("clock", {"type": "object"})))


class CoolsDown(Middleware):
    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return await model.do_stream(options.replace(temperature=0.9))


class Tags(Middleware):
    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return options.replace(metadata={**(options.metadata or {}), "tag": "seen"})


class ShoutsWithoutSayingSo(Passing):
    writes = frozenset()

    def whole(self, result: GenerateResult) -> GenerateResult:
        return with_text(result, str.upper)


class AnswersByItself(Middleware):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return GenerateResult()

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(GenerateResult())


class RefusesByLength(Passing):
    """Refuses a text of an odd number of characters, and calls that final."""

    monotone = True

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options)
        if len(result.text) % 2:
            raise options.context.deny("odd", "That was odd.")
        return result


class NeverRefuses(Passing):
    monotone = True


class CountsAnAttemptToo(Middleware):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        if options.context.scope is not None:
            options.context.scope.attempts += 1
        return await model.do_generate(options)


class AnswersInPlaceOfARefusal(Middleware):
    """It asks as a helper, whose refusal is not the call's, and takes what comes for the answer."""

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options.for_helper(options.prompt))
        return await model.do_generate(options) if result.finish_reason.unified == "stop" else result

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return await model.do_stream(options)


class EndsTheCallItself(Middleware):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        options.context.scope.settle("ok")  # type: ignore[union-attr]  # that is what is wrong with it
        return await model.do_generate(options)


def _count(options: CallOptions) -> None:
    options.context.at_end(lambda outcome: None)


class DoesNotSayThatItNeedsAScope(Middleware):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        _count(options)
        return await model.do_generate(options)
