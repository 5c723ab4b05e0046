"""`extract_json`: a JSON answer without the code fence that models like to put around it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from pydantic import ImportString

from ..errors import ConfigError
from ..pipeline import Middleware, MiddlewareConfig, Stage
from ..pipeline.member import Effect
from ..pipeline.middleware import is_sync
from ..protocol import CallOptions, GenerateResult, LanguageModel, StreamResult, Text
from ..protocol.blocks import Block

if TYPE_CHECKING:
    Transform: TypeAlias = Callable[[str], str]
else:
    Transform = ImportString[Callable[[str], str]]


class ExtractJsonConfig(MiddlewareConfig):
    """transform: a function, or its `module:function`, that gets the whole text of a block and returns the JSON in it,
    instead of the usual removal of a fence. A stream then holds each block to its end.
    """

    transform: Transform | None = None


class ExtractJson(Middleware):
    """Takes the code fence off a text that begins with one, without a label or labelled json, and the closing fence
    off its end.

    The blanks around the two go with them. A text that begins with anything else is left as it is, fences in it
    included, and so is what follows a closing fence that is not the end. A stream waits for what may still become a
    fence, and no more; it cannot take the opening fence back, so that it goes also where the text breaks off before
    the closing one, or goes on after it.
    """

    stage: ClassVar[int] = Stage.ADAPT
    before: ClassVar[tuple[str, ...]] = ("extract_reasoning",)  # a fence is often the first thing after the thinking
    reads: ClassVar[frozenset[Effect]] = frozenset({"output"})
    writes: ClassVar[frozenset[Effect]] = frozenset({"output"})
    Config = ExtractJsonConfig
    config: ExtractJsonConfig

    def __init__(self, config: ExtractJsonConfig | None = None, **values: object) -> None:
        super().__init__(config, **values)
        transform = self.config.transform
        if transform is not None and not is_sync(transform):
            raise ConfigError(f"{self.id}.transform is a plain function: text goes through it while a stream is read")

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options)
        content = [
            item.replace(text=self._whole(item.text)) if isinstance(item, Text) else item for item in result.content
        ]
        return result.replace(content=content)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).blocks(lambda kind, id: self._block())

    def _block(self) -> Block:
        transform = self.config.transform
        return FenceRemover() if transform is None else _Transformed(transform, self.id)

    def _whole(self, text: str) -> str:
        block = self._block()
        return block.delta(text) + block.end()


# What may still become an opening fence, and what is one: until a character comes that is no blank, the label or the
# blanks behind it may go on. On the fence's own line only JSON may begin, else "```jsonnet" would lose its "```json".
_MAY_OPEN = re.compile(r"\s*(?:`{0,2}|```\s*|```[ \t]*(?:j|js|jso|json\s*))", re.IGNORECASE)
_OPENS = re.compile(r"\s*```(?:[ \t]*json)?(?:[^\S\n]*\n\s*|[ \t]*(?=[{\[\"]))", re.IGNORECASE)

_CLOSES = re.compile(r"\s*```\s*")


class FenceRemover:
    """Takes the fence off one text, in whatever pieces it comes. `delta(piece)` returns what may leave now; `end()`
    what was held and is no fence."""

    __slots__ = ("_held", "_within")

    def __init__(self) -> None:
        self._held = ""
        self._within: bool | None = None  # whether the text begins with a fence; None while that is open

    def delta(self, text: str) -> str:
        if self._within is False:
            return text
        text = self._held + text
        if self._within is None:
            if _MAY_OPEN.fullmatch(text):
                self._held = text
                return ""
            text = self._opened(text)
            if not self._within:
                return text
        return self._let_go(text)

    def end(self) -> str:
        held = self._held
        if self._within is None:
            held = self._opened(held)
        self._held = ""
        return "" if self._within and _CLOSES.fullmatch(held) else held

    def _opened(self, text: str) -> str:
        """The text without its opening fence, if it has one, now that it is known whether it has."""
        self._held = ""
        fence = _OPENS.match(text)
        self._within = fence is not None
        return text if fence is None else text[fence.end() :]

    def _let_go(self, text: str) -> str:
        """What can no longer be part of a closing fence, which is one only at the end of the text."""
        unblank = text.rstrip()
        ticks = min(3, len(unblank) - len(unblank.rstrip("`")))
        if ticks < 3 and len(unblank) < len(text):
            ticks = 0  # blanks in the middle of it: no fence
        end = len(unblank[: len(unblank) - ticks].rstrip())
        self._held = text[end:]
        return text[:end]


class _Transformed:
    """One text that is held to its end, and then goes through the function of a configuration."""

    __slots__ = ("_id", "_pieces", "_transform")

    def __init__(self, transform: Callable[[str], object], id: str) -> None:
        self._transform = transform
        self._id = id
        self._pieces: list[str] = []

    def delta(self, text: str) -> str:
        self._pieces.append(text)
        return ""

    def end(self) -> str:
        text = "".join(self._pieces)
        if not text:
            return text
        made = self._transform(text)
        if not isinstance(made, str):
            raise ConfigError(f"{self._id}.transform returned {type(made).__name__}, not a text")
        return made
