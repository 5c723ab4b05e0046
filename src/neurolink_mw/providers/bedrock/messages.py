"""V3 to native: a prompt as system blocks and messages. Pure.

Converse's own rules are kept whatever the prompt looks like: `conversation` pairs calls and results and joins messages
of one role, blank text is never sent, and nor is a message without content. What Converse has no place for is refused
by its place in the prompt where the model would miss it, and left out with a warning where it has already answered.

Options that are read, in `provider_options["bedrock"]`: `cachePoint` on everything; `signature` and `redactedContent`
on reasoning; `citations` on an answer's text; `type: "server_tool_use"` on a call that the service ran itself, and
`serverTool` on its result; `role: "system"` on a system message that keeps its place and role; `block` on a system
message, and on a part of type `custom`, a native block that is sent as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...protocol import (
    AssistantMessage,
    AssistantPart,
    CallWarning,
    FilePart,
    Message,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolPart,
    ToolResultPart,
    UnknownPart,
    UserMessage,
    UserPart,
)
from ..common.json_values import plain
from ..common.prompt import options_of, some, write_prompt
from .capabilities import Capabilities, capabilities_of
from .conversation import ConverseConversation, is_blank
from .errors import ErrorReader
from .media import DocumentNames, file_block
from .native_values import Block, decoded, restored
from .options import part_options
from .tool_ids import NativeIds, native_name
from .tool_results import ResultWriter, foreign_block

SERVER_TOOL = "server_tool_use"


class NativeConversation(NamedTuple):
    """`system` blocks and `messages`, as Converse takes them."""

    system: list[Block]
    messages: list[dict[str, object]]


def native_messages(
    prompt: Sequence[Message],
    model_id: str | None,
    errors: ErrorReader,
    warnings: list[CallWarning],
    *,
    capabilities: Capabilities | None = None,
    late_system: str = "user",
    bucket_owner: str | None = None,
    with_tools: bool = True,
) -> NativeConversation:
    """The system blocks and messages of a prompt; `warnings` gets what was left out or moved.

    late_system: the role of a system message after the head, "user" or "system". bucket_owner: of `s3://` addresses
    that name none. with_tools: whether calls and results are sent; Converse refuses them in a request without tools.

    Raises InvalidRequestError that names the place for a part that cannot be sent and for a call without a result.
    """
    capabilities = capabilities or capabilities_of(model_id or "")
    writer = _Writer(errors, warnings, capabilities, late_system, bucket_owner, with_tools)
    return writer.write(prompt)


class _Writer:
    def __init__(
        self,
        errors: ErrorReader,
        warnings: list[CallWarning],
        capabilities: Capabilities,
        late_system: str,
        bucket_owner: str | None,
        with_tools: bool,
    ) -> None:
        self._errors = errors
        self._warnings = warnings
        self._late_system = late_system
        self._bucket_owner = bucket_owner
        self._with_tools = with_tools
        self._system: list[Block] = []
        self._talk = ConverseConversation(errors, warnings)
        self._names = DocumentNames()
        self._ids = NativeIds(capabilities.short_ids)
        self._results = ResultWriter(errors, self._names, capabilities, bucket_owner)
        self._answered: set[str] = set()
        self._unsigned: list[str] = []
        self._tool_parts = 0

    def write(self, prompt: Sequence[Message]) -> NativeConversation:
        self._answered = {
            part.tool_call_id
            for message in prompt
            if isinstance(message, AssistantMessage | ToolMessage)
            for part in message.content
            if isinstance(part, ToolResultPart)
        }
        write_prompt(prompt, self, self._errors)
        self._tell()
        return NativeConversation(self._system, self._talk.messages())

    def begin(self, place: str) -> None:
        self._talk.forget()

    def end_part(self, part: UserPart | AssistantPart | ToolPart, place: str) -> None:
        self._add_cache_point(options_of(part), place)

    def end(self, message: UserMessage | AssistantMessage | ToolMessage, place: str) -> None:
        self._add_cache_point(message.provider_options, place)

    # ------------------------------------------------------------------------------------------------------- system

    def add_system(self, message: SystemMessage, place: str) -> None:
        own = part_options(message.provider_options)
        said: Block = foreign_block(message.provider_options) or {"text": message.content}
        block = None if is_blank(said) else said
        point = self._cache_point(message.provider_options, place)
        if own.get("role") != "system" and self._talk.is_empty:
            if block is not None:
                self._system.append(block)
            if point is not None and self._system:  # after nothing there is nothing to cache
                self._system.append(point)
            return
        role = "system" if "system" in (own.get("role"), self._late_system) else "user"
        if block is not None:
            self._talk.add(role, block)
            if role == "user":
                details = f"{place} stands after the head of the prompt and was sent in its place as the user's text"
                self._warnings.append(CallWarning("compatibility", "system message", details))
        if point is not None:
            self._talk.add_cache_point(point)

    # --------------------------------------------------------------------------------------------------------- user

    def add_user_part(self, part: UserPart, place: str) -> None:
        if isinstance(part, TextPart):
            self._talk.add("user", {"text": part.text})
        elif isinstance(part, FilePart):
            self._talk.add("user", self._file(part, place))
        elif isinstance(part, UnknownPart) and (block := foreign_block(options_of(part))) is not None:
            self._talk.add("user", block)
        else:
            raise self._errors.refused(
                f"{place}: a user message carries text and files here, not a part of type {part.type!r}"
            )

    # ---------------------------------------------------------------------------------------------------- assistant

    def add_assistant_part(self, part: AssistantPart, place: str) -> None:
        if isinstance(part, TextPart):
            if part.text.strip():  # its citations, too, are those of a text
                self._talk.add("assistant", _answer_text(part))
        elif isinstance(part, ReasoningPart):
            block = self._reasoning(part, place)
            if block is None:
                self._unsigned.append(place)
            else:
                self._talk.add("assistant", block)
        elif isinstance(part, ToolCallPart):
            self._add_call(part, place)
        elif isinstance(part, ToolResultPart):
            self.add_result(part, place, of_server=part_options(part.provider_options).get("serverTool") is True)
        elif isinstance(part, FilePart):
            self._talk.add("assistant", self._file(part, place))
        elif isinstance(part, UnknownPart) and (block := foreign_block(options_of(part))) is not None:
            self._talk.add("assistant", block)
        else:
            details = f"{place} has no place in an assistant message here and was left out"
            self._warnings.append(CallWarning("unsupported", f"{part.type} part in an assistant message", details))

    def _reasoning(self, part: ReasoningPart, place: str) -> Block | None:
        own = part_options(part.provider_options)
        redacted = own.get("redactedContent")
        if redacted is None:
            redacted = own.get("redactedData")
        if redacted is not None:
            data: object = restored(redacted)
            if isinstance(data, str):
                try:
                    data = decoded(data)
                except ValueError:
                    data = None
            if not isinstance(data, bytes):
                raise self._errors.refused(f"{place}: redactedContent is base64, as the answer had it")
            return {"reasoningContent": {"redactedContent": data}}
        signature = own.get("signature")
        if not isinstance(signature, str):
            return None  # models refuse unsigned reasoning, or repeat it in their answers
        return {"reasoningContent": {"reasoningText": {"text": part.text, "signature": signature}}}

    # -------------------------------------------------------------------------------------------------------- tools

    def _add_call(self, part: ToolCallPart, place: str) -> None:
        if not self._with_tools:
            self._tool_parts += 1
            return
        of_server = part_options(part.provider_options).get("type") == SERVER_TOOL
        if part.provider_executed and not of_server and part.tool_call_id not in self._answered:
            details = f"{place} was run by another provider, without a result in the prompt, and was left out"
            self._warnings.append(CallWarning("unsupported", "provider-executed tool call", details))
            return
        input = plain(part.input, f"{place}.input", self._errors)
        use: dict[str, object] = {
            "toolUseId": self._ids.of(part.tool_call_id),
            "name": native_name(part.tool_name),
            "input": input if isinstance(input, dict) else {"rawInvalidInput": input},
        }
        if of_server:
            self._talk.add("assistant", {"toolUse": {**use, "type": SERVER_TOOL}})
        else:
            self._talk.add_call(part.tool_call_id, {"toolUse": use}, place)

    def add_result(self, part: ToolResultPart, place: str, *, of_server: bool = False) -> None:
        if not self._with_tools:
            self._tool_parts += 1
            return
        if not of_server and not self._talk.awaits(part.tool_call_id, place):
            return
        block = self._results.block(part, self._ids.of(part.tool_call_id), place)
        if of_server:
            self._talk.add("assistant", block)
        else:
            self._talk.add_result(part.tool_call_id, block)

    # ------------------------------------------------------------------------------------------------------- shared

    def _file(self, part: FilePart, place: str) -> Block:
        return file_block(part, place, self._names, self._errors, self._bucket_owner)

    def _cache_point(self, provider_options: Mapping[str, object] | None, place: str) -> Block | None:
        point = part_options(provider_options).get("cachePoint")
        if point is None:
            return None
        if not isinstance(point, Mapping):
            raise self._errors.refused(f'{place}: cachePoint is an object such as {{"type": "default"}}')
        return {"cachePoint": plain(point, place, self._errors)}

    def _add_cache_point(self, provider_options: Mapping[str, object] | None, place: str) -> None:
        block = self._cache_point(provider_options, place)
        if block is not None:
            self._talk.add_cache_point(block)

    def _tell(self) -> None:
        if self._unsigned:
            details = f"{some(self._unsigned)} without a signature: left out, since models refuse or repeat it"
            self._warnings.append(CallWarning("unsupported", "reasoning", details))
        if self._tool_parts:
            details = f"{self._tool_parts} tool calls and results were left out: Converse takes none without tools"
            self._warnings.append(CallWarning("unsupported", "toolContent", details))


def _answer_text(part: TextPart) -> Block:
    citations = part_options(part.provider_options).get("citations")
    if isinstance(citations, list | tuple) and citations:
        return {"citationsContent": {"content": [{"text": part.text}], "citations": restored(citations)}}
    return {"text": part.text}
