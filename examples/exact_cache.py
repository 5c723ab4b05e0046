"""A cache as a plugin author writes it: the same request gets the same answer, generated or streamed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from json import dumps

import anyio

from neurolink_mw import (
    BuildContext,
    CallOptions,
    GenerateResult,
    LanguageModel,
    Middleware,
    Stage,
    StreamResult,
    hookimpl,
    to_json,
    wrap_model,
)
from neurolink_mw.pipeline import Member
from neurolink_mw.protocol import TextDelta
from neurolink_mw.testing import ScriptedModel


class ExactCache(Middleware):
    stage = Stage.CACHE
    may_answer = True

    def bind(self, build: BuildContext) -> None:
        self.answers: dict[str, GenerateResult] = {}

    def keep(self, key: str, answer: GenerateResult) -> None:
        if answer.finish_reason.unified != "error":
            self.answers[key] = answer

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        if (known := self.answers.get(key := dumps(to_json(options), sort_keys=True))) is None:
            self.keep(key, known := await model.do_generate(options))
        return known

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        known = self.answers.get(key := dumps(to_json(options), sort_keys=True))
        return StreamResult.of(known) if known else (await model.do_stream(options)).collected(partial(self.keep, key))


@hookimpl
def register_middlewares(register: Callable[[type[Member]], None]) -> None:
    register(ExactCache)


async def main() -> None:
    bare = ScriptedModel(["Paris.", "Rome."])
    model = wrap_model(bare, [ExactCache()])
    france, italy = CallOptions.from_text("Capital of France?"), CallOptions.from_text("Capital of Italy?")

    print((await model.do_generate(france)).text)
    for options in (france, italy, italy):
        async with (await model.do_stream(options)).stream as stream:
            print("".join([part.delta async for part in stream if isinstance(part, TextDelta)]))
    print(f"{len(bare.calls)} of 4 calls reached the model")


if __name__ == "__main__":
    anyio.run(main)
