"""`default_instructions`: a system message for whoever sent none."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from ..pipeline import Middleware, MiddlewareConfig, Stage
from ..pipeline.member import Effect
from ..protocol import CallOptions, Kind, LanguageModel, SystemMessage

Instruction = Annotated[str, Field(min_length=1)]


class DefaultInstructionsConfig(MiddlewareConfig):
    """instructions: a text, or a list of texts, each of which becomes a system message."""

    instructions: Instruction | tuple[Instruction, ...]


class DefaultInstructions(Middleware):
    """Puts instructions in front of a prompt that has none.

    A system message anywhere in the prompt is the caller's own instruction: then nothing is added. So nothing is added
    twice either, where a prompt comes through here again at the next step of a turn.
    """

    stage: ClassVar[int] = Stage.NORMALIZE
    reads: ClassVar[frozenset[Effect]] = frozenset({"prompt"})
    writes: ClassVar[frozenset[Effect]] = frozenset({"prompt"})
    Config = DefaultInstructionsConfig
    config: DefaultInstructionsConfig

    def __init__(self, config: DefaultInstructionsConfig | None = None, **values: object) -> None:
        super().__init__(config, **values)
        given = self.config.instructions
        self._messages = tuple(SystemMessage(text) for text in ((given,) if isinstance(given, str) else given))

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        if not self._messages or any(isinstance(message, SystemMessage) for message in options.prompt):
            return options
        return options.replace(prompt=(*self._messages, *options.prompt))
