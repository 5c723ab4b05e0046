"""V3 to native: a prompt as system blocks and messages. Pure.

The API's own rules are kept whatever the prompt looks like: `conversation` pairs calls and results and joins messages
of one role, blank text is never sent, and nor is a message without content. What has no place is refused by its place
in the prompt where the model would miss it, and left out with a warning where it has already answered.

Options that are read, in `provider_options["anthropic"]`: `cacheControl` on everything; `signature` and `redactedData`
on reasoning; `citations` on an answer's text; on calls and results what `server_tools` puts into their metadata; on a
system message after the head `clearAt`, `outputConfig` and `toolChanges`, a list of such as `{"type": "tool_addition",
"toolName": ...}`; `block` on a system message, and on a part of type `custom`, a native block that is sent as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

from ...protocol import (
    JSON,
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
from ..common.conversation import Conversation
from ..common.json_values import plain
from ..common.prompt import options_of, some, write_prompt
from .cache import CacheMarks
from .errors import ErrorReader
from .media import file_block
from .naming import snake_keys
from .native_values import Block, is_blank, snaked
from .options import ProviderOptions, part_options
from .server_calls import ServerCalls
from .thinking import THOUGHTS
from .tool_names import ToolNames, native_id
from .tool_results import foreign_block, result_block

_CHANGES: Final = frozenset({"tool_addition", "tool_removal"})
_NOT_IN_REQUESTS: Final = frozenset({"file_id"})
"""Members that a citation has in answers alone."""


class NativeConversation(NamedTuple):
    """`system` blocks and `messages`, as the API takes them."""

    system: list[Block]
    messages: list[Block]


def native_messages(
    prompt: Sequence[Message],
    errors: ErrorReader,
    warnings: list[CallWarning],
    *,
    own: ProviderOptions,
    names: ToolNames,
    marks: CacheMarks,
) -> NativeConversation:
    """The system blocks and messages of a prompt; `warnings` gets what was left out or moved.

    own: the call's provider options. names: of its tools. marks: counts cache marks, those of the tools after these.

    Raises InvalidRequestError that names the place for a part that cannot be sent and for a call without a result.
    """
    return _Writer(errors, warnings, own, names, marks).write(prompt)


class _Writer:
    def __init__(
        self,
        errors: ErrorReader,
        warnings: list[CallWarning],
        own: ProviderOptions,
        names: ToolNames,
        marks: CacheMarks,
    ) -> None:
        self._errors = errors
        self._warnings = warnings
        self._own = own
        self._names = names
        self._marks = marks
        self._system: list[Block] = []
        self._talk = Conversation("the API", errors, warnings)
        self._server = ServerCalls(names, errors)
        self._toolsets: dict[str, object] = {}
        self._added: list[Block] = []  # by the message that is being written
        self._unsigned: list[str] = []
        self._unsent: list[str] = []
        self._cut_thoughts = 0
        self._index = -1  # of the message that is written
        self._turn = -1  # where the turn begins that is going on
        self._native_ids: dict[str, str] = {}  # of the latest calls
        self._taken: set[str] = set()

    def write(self, prompt: Sequence[Message]) -> NativeConversation:
        self._turn = max((n for n, message in enumerate(prompt) if isinstance(message, UserMessage)), default=-1)
        write_prompt(prompt, self, self._errors)
        messages = self._without_thoughts_at_the_end(self._talk.messages())
        self._tell()
        return NativeConversation(self._system, messages)

    def _without_thoughts_at_the_end(self, messages: list[Block]) -> list[Block]:
        """An answer that was cut while the model thought: the API takes no thought at the end of a message. Where it
        said nothing else, what stood around it becomes one message."""
        kept: list[Block] = []
        for message in messages:
            content = message.get("content")
            if message["role"] == "assistant" and isinstance(content, list):
                while content and content[-1].get("type") in THOUGHTS:
                    content.pop()
                    self._cut_thoughts += 1
                if not content:
                    continue
            before = kept[-1] if kept else {}
            if before.get("role") == message["role"] and before.keys() == message.keys() == {"role", "content"}:
                kept[-1] = {**message, "content": [*_content(before), *_content(message)]}
            else:
                kept.append(message)
        return kept

    def begin(self, place: str) -> None:
        self._added = []
        self._index += 1

    def end_part(self, part: UserPart | AssistantPart | ToolPart, place: str) -> None:
        """Marks are set with the parts."""

    def end(self, message: UserMessage | AssistantMessage | ToolMessage, place: str) -> None:
        self._marks.set_on_last(self._added, place, message.provider_options)

    # ------------------------------------------------------------------------------------------------------- system

    def add_system(self, message: SystemMessage, place: str) -> None:
        said = message.provider_options
        block: Block = self._foreign(said, place) or {"type": "text", "text": message.content}
        blocks = [] if is_blank(block) else [block]
        if self._talk.is_empty:
            self._system += blocks
            self._marks.set_on_last(blocks, place, said)
            return
        own = part_options(said)
        blocks += [self._tool_change(change, place) for change in _changes(own.get("toolChanges"))]
        members = {
            name: snaked(plain(own[option], place, self._errors))
            for name, option in (("clear_at", "clearAt"), ("output_config", "outputConfig"))
            if own.get(option) is not None
        }
        if members or len(blocks) > 1 or (blocks and blocks[0].get("type") in _CHANGES):
            self._talk.add_message("system", blocks, members)
        elif blocks:
            self._talk.add(self._own.late_system, blocks[0])
            if self._own.late_system == "user":
                details = f"{place} stands after the head of the prompt and was sent in its place as the user's text"
                self._warnings.append(CallWarning("compatibility", "system message", details))
        self._marks.set_on_last(blocks, place, said)

    def _tool_change(self, change: object, place: str) -> Block:
        kind = change.get("type") if isinstance(change, Mapping) else None
        name = change.get("toolName") if isinstance(change, Mapping) else None
        if kind not in _CHANGES or not isinstance(name, str):
            raise self._errors.refused(
                f"{place}: toolChanges is a list of objects with type 'tool_addition' or 'tool_removal' and a toolName"
            )
        return {"type": kind, "tool": {"type": "tool_reference", "name": self._names.native(name)}}

    # --------------------------------------------------------------------------------------------------------- user

    def add_user_part(self, part: UserPart, place: str) -> None:
        if isinstance(part, TextPart):
            self._add("user", {"type": "text", "text": part.text}, part.provider_options, place)
        elif isinstance(part, FilePart):
            self._add("user", file_block(part, place, self._errors), part.provider_options, place)
        elif isinstance(part, UnknownPart) and (block := self._foreign(options_of(part), place)) is not None:
            self._add("user", block, options_of(part), place)
        else:
            raise self._errors.refused(
                f"{place}: a user message carries text and files here, not a part of type {part.type!r}"
            )

    # ---------------------------------------------------------------------------------------------------- assistant

    def add_assistant_part(self, part: AssistantPart, place: str) -> None:
        said = options_of(part)
        if isinstance(part, TextPart):
            self._add("assistant", _answer_text(part), said, place)
        elif isinstance(part, ReasoningPart):
            block = self._reasoning(part, place)
            if block is not None:
                self._add("assistant", block, said, place)
        elif isinstance(part, ToolCallPart):
            self._add_call(part, place)
        elif isinstance(part, ToolResultPart):
            if self._server.is_known(part):
                block = self._server.result(part, place)
                if block is not None:
                    self._add("assistant", block, said, place)
            else:
                self.add_result(part, place)
        elif isinstance(part, FilePart):
            self._add("assistant", file_block(part, place, self._errors), said, place)
        elif isinstance(part, UnknownPart) and (block := self._foreign(said, place)) is not None:
            self._add("assistant", block, said, place)
        else:
            details = f"{place} has no place in an assistant message here and was left out"
            self._warnings.append(CallWarning("unsupported", f"{part.type} part in an assistant message", details))

    def _reasoning(self, part: ReasoningPart, place: str) -> Block | None:
        """Signed or redacted as it came; models refuse any other, and one is never made up."""
        if not self._own.send_reasoning and self._index < self._turn:
            # That of the turn which is going on has to go back: the API refuses its calls without it.
            self._unsent.append(place)
            return None
        own = part_options(part.provider_options)
        if isinstance(signature := own.get("signature"), str):
            return {"type": "thinking", "thinking": part.text, "signature": signature}
        if isinstance(data := own.get("redactedData"), str):
            return {"type": "redacted_thinking", "data": data}
        self._unsigned.append(place)
        return None

    # -------------------------------------------------------------------------------------------------------- tools

    def _add_call(self, part: ToolCallPart, place: str) -> None:
        if part.provider_executed:
            block = self._server.call(part, place)
            if block is not None:
                self._add("assistant", block, part.provider_options, place)
            return
        input = plain(part.input, f"{place}.input", self._errors)
        use: Block = {
            "type": "tool_use",
            "id": self._new_id(part.tool_call_id),
            "name": self._names.native(part.tool_name),
            # The API takes objects alone, and what the model wrote is not lost.
            "input": input if isinstance(input, dict) else {"rawInvalidInput": input},
        }
        own = part_options(part.provider_options)
        if isinstance(caller := own.get("caller"), Mapping):
            use["caller"] = snake_keys(cast(JSON, plain(caller, place, self._errors)))
        if isinstance(toolset := own.get("toolsetName"), str):
            use["toolset_name"] = toolset
            self._toolsets[part.tool_call_id] = toolset
        self._talk.add_call(part.tool_call_id, use, place)
        self._keep(use, part.provider_options, place)

    def add_result(self, part: ToolResultPart, place: str) -> None:
        if not self._talk.awaits(part.tool_call_id, place):
            return
        id = self._native_ids.get(part.tool_call_id) or native_id(part.tool_call_id)
        block = result_block(part, id, place, self._marks, self._errors)
        if (toolset := self._toolsets.get(part.tool_call_id)) is not None:
            block.setdefault("toolset_name", toolset)
        self._talk.add_result(part.tool_call_id, block)
        self._keep(block, part.provider_options, place, part.output)

    def _new_id(self, id: str) -> str:
        """The native id of a call. The API wants ids that are unique in a conversation; some gateways count anew in
        each answer."""
        native, number = native_id(id), 1
        while native in self._taken:
            number += 1
            native = native_id(f"{id}-{number}")
        self._taken.add(native)
        self._native_ids[id] = native
        return native

    # ------------------------------------------------------------------------------------------------------- shared

    def _add(self, role: str, block: Block, said: Mapping[str, object] | None, place: str) -> None:
        if not is_blank(block):
            self._talk.add(role, block)
            self._keep(block, said, place)

    def _keep(self, block: Block, said: Mapping[str, object] | None, place: str, output: object = None) -> None:
        """Remember a block as one of its message's, and mark it where it, or its output, says so."""
        self._added.append(block)
        self._marks.set_on(block, place, said, getattr(output, "provider_options", None))

    def _foreign(self, said: Mapping[str, object] | None, place: str) -> Block | None:
        return foreign_block(said, place, self._errors)

    def _tell(self) -> None:
        if self._unsigned:
            message = f"{some(self._unsigned)} without a signature: left out, since models refuse such reasoning"
            self._warnings.append(CallWarning("other", message=message))
        if self._unsent:
            message = f"{some(self._unsent)}: left out, since sendReasoning is false"
            self._warnings.append(CallWarning("other", message=message))
        if self._cut_thoughts:
            message = "reasoning at the end of an answer was left out: the API takes none there"
            self._warnings.append(CallWarning("other", message=message))
        if self._server.unknown:
            details = f"{some(self._server.unknown)}: run by another provider, and left out with what came of it"
            self._warnings.append(CallWarning("unsupported", "provider-executed tool call", details))


def _content(message: Block) -> list[object]:
    content = message["content"]
    assert isinstance(content, list)  # as it was put together here
    return content


def _changes(changes: object) -> Sequence[object]:
    return changes if isinstance(changes, list | tuple) else () if changes is None else (changes,)


def _answer_text(part: TextPart) -> Block:
    block: Block = {"type": "text", "text": part.text}
    citations = part_options(part.provider_options).get("citations")
    if isinstance(citations, list | tuple) and citations:
        block["citations"] = [
            {name: item for name, item in citation.items() if name not in _NOT_IN_REQUESTS}
            for citation in citations
            if isinstance(citation, Mapping)
        ]
    return block
