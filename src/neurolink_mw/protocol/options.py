"""One call: the prompt and everything that may be said about how to answer it. The same object serves generate and
stream, and is never changed: `options.replace(...)` makes another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import ClassVar, Self, TypeAlias

from .content import UnknownPart
from .context import DETACHED, CallContext
from .prompt import Message, user
from .values import FrozenDict, JSONObject, Value, copier, frozen_json, list_as_tuple, value


@value
class ToolExample(Value):
    """An example of a tool's input."""

    input: JSONObject
    extra: JSONObject | None = None


@value
class FunctionTool(Value):
    """A tool that the caller runs. `input_schema` is a JSON Schema (draft 7) of the input object."""

    type: ClassVar[str] = "function"
    name: str
    input_schema: JSONObject
    description: str | None = None
    input_examples: tuple[ToolExample, ...] | None = None
    strict: bool | None = None
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ProviderTool(Value):
    """A tool that the provider defines. `id` is `vendor.tool`."""

    type: ClassVar[str] = "provider"
    id: str
    name: str
    args: JSONObject = FrozenDict()
    extra: JSONObject | None = None


ToolDefinition: TypeAlias = FunctionTool | ProviderTool | UnknownPart


@value
class ToolChoice(Value):
    """type: "auto", "none", "required", or "tool" with `tool_name`. Absent means auto."""

    type: str
    tool_name: str | None = None
    extra: JSONObject | None = None


@value
class ResponseFormat(Value):
    """type: "text", or "json" with an optional JSON Schema (draft 7), name and description."""

    type: str
    schema: JSONObject | None = None
    name: str | None = None
    description: str | None = None
    extra: JSONObject | None = None


_FROM_TEXT = ": use CallOptions.from_text(text) for a prompt of one text"


@value
class CallOptions(Value):
    """One call to a model.

    None means "not set": the provider's default applies. 0, "" and () are values. `headers` reach HTTP providers
    only; a None value removes a default header. `provider_options` maps a provider's name to its own options.
    `metadata` is what the caller knows (tenant, user, session, tags): JSON, made read-only, never sent to a provider.
    `context` is the run-time side and takes no part in equality or JSON.
    """

    prompt: Sequence[Message]
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop_sequences: Sequence[str] | None = None
    response_format: ResponseFormat | None = None
    tools: Sequence[ToolDefinition] | None = None
    tool_choice: ToolChoice | None = None
    reasoning: str | None = None
    include_raw_chunks: bool | None = None
    headers: Mapping[str, str | None] | None = None
    provider_options: Mapping[str, JSONObject] | None = None
    metadata: JSONObject | None = None
    extra: JSONObject | None = None
    context: CallContext = field(default=DETACHED, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.prompt.__class__ is not tuple:
            list_as_tuple(self, "prompt", _FROM_TEXT)
        if self.tools is not None and self.tools.__class__ is not tuple:
            list_as_tuple(self, "tools")
        if self.stop_sequences is not None and self.stop_sequences.__class__ is not tuple:
            list_as_tuple(self, "stop_sequences")
        if self.metadata is not None and self.metadata.__class__ is not FrozenDict:
            object.__setattr__(self, "metadata", frozen_json(self.metadata))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Options whose prompt is one user message of one text."""
        return cls((user(text),))

    def for_helper(self, prompt: Sequence[Message]) -> CallOptions:
        """Options for a call that a middleware makes itself, such as a judge's.

        The request's identity and metadata are kept; settings and tools of the user's call are not, and the call gets
        a scope of its own, so that its outcome is never taken for the user's.
        """
        return CallOptions(prompt, metadata=self.metadata, context=self.context.for_helper())


with_context: Callable[[CallOptions, object], CallOptions] = copier(CallOptions, "context")
"""A copy of options with another context: what a pipeline does at the start of every call."""
