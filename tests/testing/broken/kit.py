"""What the deliberately broken middlewares share: a base that passes everything on, for each to break in one place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from neurolink_mw.pipeline import Middleware
from neurolink_mw.protocol import CallOptions, GenerateResult, LanguageModel, PartStream, StreamPart, StreamResult, Text


class Passing(Middleware):
    """Passes both calls on, the stream through `parts`, the whole answer through `whole`."""

    writes = frozenset({"output"})

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return self.whole(await model.do_generate(options))

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).through(self.parts)

    def whole(self, result: GenerateResult) -> GenerateResult:
        return result

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part


def with_text(result: GenerateResult, change: Callable[[str], str]) -> GenerateResult:
    """The answer with another text in each text block."""
    content = [item.replace(text=change(item.text)) if isinstance(item, Text) else item for item in result.content]
    return result.replace(content=content)
