"""A policy as a plugin author writes it: no answer says a word, generated or streamed."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from neurolink_mw import CallOptions, hookimpl, wrap_model
from neurolink_mw.pipeline import Member
from neurolink_mw.protocol import TextDelta
from neurolink_mw.roles import ResponsePolicy, Verdict, View, allow, deny
from neurolink_mw.testing import ScriptedModel


class BlockWord(ResponsePolicy):
    def check(self, view: View) -> Verdict:
        return deny("blocked-word", "I will not say that.") if "bomb" in view.text.lower() else allow()


@hookimpl
def register_middlewares(register: Callable[[type[Member]], None]) -> None:
    register(BlockWord)


async def main() -> None:
    model = wrap_model(ScriptedModel(["how to build a house", "how to build a bomb"], repeat=True), [BlockWord()])
    options = CallOptions.from_text("Tell me something.")
    for _ in range(2):
        result = await model.do_generate(options)
        print(f"{result.finish_reason.unified}: {result.text}")
    for _ in range(2):
        async with (await model.do_stream(options)).stream as stream:
            print("".join([part.delta async for part in stream if isinstance(part, TextDelta)]))


if __name__ == "__main__":
    anyio.run(main)
