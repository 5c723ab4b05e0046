"""A prompt on its way into a native request: which part goes where, and what is none. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ...protocol import (
    AssistantMessage,
    AssistantPart,
    Message,
    SystemMessage,
    ToolApprovalResponsePart,
    ToolMessage,
    ToolPart,
    ToolResultPart,
    UnknownPart,
    UserMessage,
    UserPart,
)
from .error_maker import ErrorMaker


class PromptWriter(Protocol):
    """Takes a prompt part by part. place: as in `prompt[0].content[1]`."""

    def begin(self, place: str) -> None: ...

    def add_system(self, message: SystemMessage, place: str) -> None: ...

    def add_user_part(self, part: UserPart, place: str) -> None: ...

    def add_assistant_part(self, part: AssistantPart, place: str) -> None: ...

    def add_result(self, part: ToolResultPart, place: str) -> None: ...

    def end_part(self, part: UserPart | AssistantPart | ToolPart, place: str) -> None: ...

    def end(self, message: UserMessage | AssistantMessage | ToolMessage, place: str) -> None: ...


def write_prompt(prompt: Sequence[Message], writer: PromptWriter, errors: ErrorMaker) -> None:
    """Give each part to the writer. Approvals are between the caller and the loop, and go nowhere.

    Raises InvalidRequestError that names the place for what is no message, and for a part of a tool message that is no
    result.
    """
    for index, message in enumerate(prompt):
        place = f"prompt[{index}]"
        writer.begin(place)
        if isinstance(message, SystemMessage):
            writer.add_system(message, place)
            continue
        if not isinstance(message, UserMessage | AssistantMessage | ToolMessage):
            raise errors.refused(
                f"{place}: expected a system, user, assistant or tool message, not {type(message).__name__}"
            )
        for number, part in enumerate(message.content):
            where = f"{place}.content[{number}]"
            if isinstance(message, UserMessage):
                writer.add_user_part(part, where)  # type: ignore[arg-type]  # of this message
            elif isinstance(message, AssistantMessage):
                writer.add_assistant_part(part, where)  # type: ignore[arg-type]  # of this message
            elif isinstance(part, ToolResultPart):
                writer.add_result(part, where)
            elif not isinstance(part, ToolApprovalResponsePart):
                raise errors.refused(f"{where}: a tool message carries tool results, not a part of type {part.type!r}")
            writer.end_part(part, where)
        writer.end(message, place)


def options_of(part: object) -> Mapping[str, object] | None:
    """A part's provider options. A `custom` part has them in its data, as metadata where it comes from an answer."""
    if isinstance(part, UnknownPart):
        said = part.data.get("providerOptions") or part.data.get("providerMetadata")
    else:
        said = getattr(part, "provider_options", None)
    return said if isinstance(said, Mapping) else None


def some(places: Sequence[str]) -> str:
    """Places, as a warning names them: the first, and how many more."""
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return f"{places[0]}{more}"
