"""`add_tool_input_examples`: examples of a tool's input, for models that read nothing but its description."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from pydantic import ImportString

from ..errors import ConfigError, ProtocolError
from ..pipeline import Middleware, MiddlewareConfig, Stage
from ..pipeline.member import Effect
from ..protocol import JSON, CallOptions, FunctionTool, JSONObject, Kind, LanguageModel, ToolDefinition, to_json

if TYPE_CHECKING:
    Format: TypeAlias = Callable[[JSONObject], str]
else:
    Format = ImportString[Callable[[JSONObject], str]]


class AddToolInputExamplesConfig(MiddlewareConfig):
    """prefix: the line above the examples. format: a function, or its `module:function`, that gets the input of one
    example and returns the text for it; without one it is its JSON in one line. remove: take the examples out of the
    tool's own field, so that no provider sends them twice or warns that it cannot.
    """

    prefix: str = "Input Examples:"
    format: Format | None = None
    remove: bool = True


class AddToolInputExamples(Middleware):
    """Writes the input examples of tools at the end of their descriptions.

    Tools without examples and tools of the provider go on as they are. An example that has no JSON form is a
    ProtocolError; a `format` that returns something else than a text, a ConfigError.
    """

    stage: ClassVar[int] = Stage.ADAPT
    reads: ClassVar[frozenset[Effect]] = frozenset({"tools"})
    writes: ClassVar[frozenset[Effect]] = frozenset({"tools"})
    Config = AddToolInputExamplesConfig
    config: AddToolInputExamplesConfig

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        if not any(isinstance(tool, FunctionTool) and tool.input_examples for tool in options.tools or ()):
            return options
        return options.replace(
            tools=[self._described(tool, f"tools[{index}]") for index, tool in enumerate(options.tools or ())]
        )

    def _described(self, tool: ToolDefinition, place: str) -> ToolDefinition:
        if not isinstance(tool, FunctionTool) or not tool.input_examples:
            return tool
        lines = [self.config.prefix]
        for index, example in enumerate(tool.input_examples):
            lines.append(self._text(example.input, f"{place}.inputExamples[{index}].input"))
        section = "\n".join(lines)
        return tool.replace(
            description=f"{tool.description}\n\n{section}" if tool.description else section,
            input_examples=None if self.config.remove else tool.input_examples,
        )

    def _text(self, example: JSONObject, place: str) -> str:
        if self.config.format is None:
            return json.dumps(_plain(example, place), ensure_ascii=False, separators=(",", ":"))
        made: object = self.config.format(example)
        if not isinstance(made, str):
            raise ConfigError(f"{self.id}.format returned {type(made).__name__}, not a text")
        return made


def _plain(example: JSONObject, place: str) -> JSON:
    try:
        return to_json(example)
    except ProtocolError as error:
        reason = str(error).removeprefix(f"{error.path}: ")
        raise ProtocolError(reason, path=f"{place}.{error.path}") from None
