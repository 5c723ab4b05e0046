"""A whole turn as a model: what can be put around a model can be put around the turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ..errors import ConfigError
from ..protocol import (
    SPECIFICATION_VERSION,
    CallOptions,
    GenerateResult,
    LanguageModel,
    StreamResult,
    SupportedUrls,
    supported_urls,
)
from ..tools import Tool
from .generate import generate_turn
from .native import has_native_do_generate
from .result import TurnRecord, turn_metadata
from .settings import TurnKeywords, TurnSettings, turn_settings
from .stream import stream_turn


class TurnModel:
    """A turn that behaves like a model.

        turn = wrap_model(TurnModel(wrap_model(model, [ForSteps()]), [weather]), [ForTheTurn()])
        await turn.do_generate(CallOptions.from_text("Do I need an umbrella?"))

    Its answer is that of the steps, the last one last: the turn's own calls and their results are in between, marked
    `provider_executed` and with `neurolink_mw` in their metadata, since nobody else has to run them; ids are
    `{step}-{id}`. Usage is the sum over the steps. settings: see `TurnSettings`. No conversation lives here: any
    number of turns may run at once.
    """

    specification_version = SPECIFICATION_VERSION
    is_turn = True

    def __init__(self, model: LanguageModel, tools: Sequence[Tool] = (), **settings: Unpack[TurnKeywords]) -> None:
        if not has_native_do_generate(model):
            raise ConfigError(f"a turn needs a model with do_generate, and {type(model).__name__} has none")
        self.model = model
        self.settings = turn_settings(tools, settings)

    @property
    def provider(self) -> str:
        return self.model.provider

    @property
    def model_id(self) -> str:
        return self.model.model_id

    @property
    def supported_urls(self) -> SupportedUrls:
        return supported_urls(self.model)

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        """The answer of the whole turn. Raises what `run_generate_loop` raises."""
        settings, record = self._setup(options)
        result = await generate_turn(self.model, options, settings, record)
        return GenerateResult(
            result.shown,
            result.finish_reason,
            result.usage,
            result.warnings,
            turn_metadata(result, None if record is None else record.run),
            response=result.response,
        )

    async def do_stream(self, options: CallOptions) -> StreamResult:
        """The same in parts, as they come."""
        turn = await stream_turn(self.model, options, *self._setup(options))
        return StreamResult(turn.stream, turn.request, turn.response)

    def _setup(self, options: CallOptions) -> tuple[TurnSettings, TurnRecord | None]:
        """How one turn runs, and what to fill in as it goes."""
        return self.settings, None

    def __repr__(self) -> str:
        return f"TurnModel({self.model!r}, {len(self.settings.tools)} tools)"
