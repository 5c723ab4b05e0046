"""Three middlewares of one's own: one changes the request, one wraps the call, one listens to outcomes."""

from __future__ import annotations

import anyio

from neurolink_mw import (
    BuildContext,
    CallOptions,
    GenerateResult,
    LanguageModel,
    Middleware,
    Outcome,
    Stage,
    StreamResult,
    wrap_model,
)
from neurolink_mw.protocol import Kind, StreamPart, SystemMessage, Text, TextDelta
from neurolink_mw.testing import ScriptedModel


class BeBrief(Middleware):
    """Puts an instruction in front of every prompt that has none."""

    stage = Stage.NORMALIZE

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        if any(isinstance(message, SystemMessage) for message in options.prompt):
            return options
        return options.replace(prompt=(SystemMessage("Be brief."), *options.prompt))


class Shout(Middleware):
    """The same change, generated and streamed."""

    stage = Stage.ADAPT

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options)
        content = [item.replace(text=item.text.upper()) if isinstance(item, Text) else item for item in result.content]
        return result.replace(content=content)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        def shout(part: StreamPart) -> StreamPart:
            return part.replace(delta=part.delta.upper()) if isinstance(part, TextDelta) else part

        return (await model.do_stream(options)).map(shout)


class Count(Middleware):
    """Counts how calls end. Every call ends exactly once, however it ends."""

    stage = Stage.OBSERVE

    def bind(self, build: BuildContext) -> None:
        self.ended: list[str] = []
        build.observe(self._count)

    def _count(self, outcome: Outcome) -> None:
        self.ended.append(f"{outcome.kind}: {outcome.status}")


async def main() -> None:
    bare, count = ScriptedModel(["hello there"], repeat=True), Count()
    model = wrap_model(bare, [count, BeBrief(), Shout()])
    options = CallOptions.from_text("Say hello.")

    print((await model.do_generate(options)).text)
    async with (await model.do_stream(options)).stream as parts:
        print("".join([part.delta async for part in parts if isinstance(part, TextDelta)]))
    async with (await model.do_stream(options)).stream as parts:
        await parts.__anext__()  # and leave

    print([message.role for message in bare.calls[0].options.prompt])
    print(count.ended)


if __name__ == "__main__":
    anyio.run(main)
