"""What a prompt takes of a model's context window: estimates in tokens, and the windows. Pure.

An estimate needs no tokenizer and no network. It is meant to be corrected by what the provider counted, and can only
be corrected upwards by whoever must not overflow: so whatever cannot be known is estimated low rather than high.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

import orjson

from .content import UnknownPart
from .options import FunctionTool, ProviderTool, ToolDefinition
from .prompt import (
    AssistantPart,
    ContentOutput,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExecutionDenied,
    FilePart,
    JsonOutput,
    Message,
    OutputContent,
    OutputCustom,
    OutputFileData,
    OutputFileId,
    OutputFileUrl,
    OutputText,
    ReasoningPart,
    SystemMessage,
    TextOutput,
    TextPart,
    ToolCallPart,
    ToolOutput,
    ToolPart,
    ToolResultPart,
    UserPart,
)

MESSAGE_TOKENS: Final = 4
"""What a message takes besides its content."""

IMAGE_TOKENS: Final = 1024
"""Any image: models scale it to what they can see, whatever its bytes are."""

FILE_TOKENS: Final = 4096
"""Any other file, such as a PDF of two or three pages or a recording."""


# ---------------------------------------------------------------------------------------------------- estimates


def estimate_text_tokens(text: str, *, factor: float = 1.0) -> int:
    """Tokens of a text: a quarter of its characters, plus three eighths of the bytes that UTF-8 adds to them.

    So English takes a token for four characters, Cyrillic for less than two, Chinese one a character, emoji rather
    more. factor: how much finer than that the model's tokenizer cuts, see `token_factor`.
    """
    more = 0 if text.isascii() else len(text.encode("utf-8", "surrogatepass")) - len(text)
    return math.ceil((2 * len(text) + 3 * more) / 8 * factor)


def estimate_json_tokens(value: object, *, factor: float = 1.0) -> int:
    """Tokens of a JSON value, by its compact text. Bytes within it count as nothing."""
    return estimate_text_tokens(json_text(value), factor=factor)


def estimate_unknown_tokens(value: object, *, factor: float = 1.0) -> int:
    """Tokens of data of an unknown kind: as JSON, but at most as a file, since it may be one in base64."""
    return min(FILE_TOKENS, estimate_json_tokens(value, factor=factor))


def estimate_file_tokens(media_type: str, data: object, *, factor: float = 1.0) -> int:
    """Tokens of a file: an image and any other file are flat; a text file in bytes is the text that it is sent as.

    A file at an address costs what the file costs, since the model gets to see it; the address itself is not counted.
    """
    if media_type.startswith("image"):
        return IMAGE_TOKENS
    if media_type.startswith("text/") and isinstance(data, bytes):
        return math.ceil(len(data) / 4 * factor)
    return FILE_TOKENS


def estimate_message_tokens(message: Message, *, factor: float = 1.0) -> int:
    """Tokens of a message with all its parts: texts, reasoning, calls with their input, results, files.

    Provider options are not counted. The cost is linear in the message's size: keep the number beside the message.
    """
    if isinstance(message, SystemMessage):
        return MESSAGE_TOKENS + estimate_text_tokens(message.content, factor=factor)
    return MESSAGE_TOKENS + sum(_part_tokens(part, factor) for part in message.content)


def _part_tokens(part: UserPart | AssistantPart | ToolPart, factor: float) -> int:
    if isinstance(part, TextPart | ReasoningPart):
        return estimate_text_tokens(part.text, factor=factor)
    if isinstance(part, FilePart):
        return estimate_file_tokens(part.media_type, part.data, factor=factor)
    if isinstance(part, ToolCallPart):
        return estimate_text_tokens(part.tool_name, factor=factor) + estimate_json_tokens(part.input, factor=factor)
    if isinstance(part, ToolResultPart):
        return estimate_output_tokens(part.output, factor=factor)
    if isinstance(part, UnknownPart):
        return estimate_unknown_tokens(part.data, factor=factor)
    return estimate_text_tokens(part.reason or "", factor=factor)


def estimate_output_tokens(output: ToolOutput, *, factor: float = 1.0) -> int:
    """Tokens of a tool's output: text, JSON by its length as JSON, pieces one by one."""
    if isinstance(output, TextOutput | ErrorTextOutput):
        return estimate_text_tokens(output.value, factor=factor)
    if isinstance(output, JsonOutput | ErrorJsonOutput):
        return estimate_json_tokens(output.value, factor=factor)
    if isinstance(output, ContentOutput):
        return sum(_piece_tokens(piece, factor) for piece in output.value)
    if isinstance(output, ExecutionDenied):
        return estimate_text_tokens(output.reason or "", factor=factor)
    return estimate_unknown_tokens(output.data, factor=factor)


def _piece_tokens(piece: OutputContent, factor: float) -> int:
    if isinstance(piece, OutputText):
        return estimate_text_tokens(piece.text, factor=factor)
    if isinstance(piece, OutputFileData):
        return estimate_file_tokens(piece.media_type, piece.data, factor=factor)
    if isinstance(piece, OutputFileUrl | OutputFileId):
        return FILE_TOKENS
    if isinstance(piece, OutputCustom):
        return estimate_unknown_tokens(piece.provider_options, factor=factor)
    return estimate_unknown_tokens(piece.data, factor=factor) if isinstance(piece, UnknownPart) else IMAGE_TOKENS


def estimate_tool_tokens(tools: Iterable[ToolDefinition], *, factor: float = 1.0) -> int:
    """Tokens of the tools that go along with a prompt: name, description, schema and examples as JSON."""
    return sum(estimate_json_tokens(_definition(tool), factor=factor) for tool in tools)


def _definition(tool: ToolDefinition) -> object:
    if isinstance(tool, FunctionTool):
        examples = [example.input for example in tool.input_examples or ()]
        return [tool.name, tool.description or "", tool.input_schema, *examples]
    if isinstance(tool, ProviderTool):
        return [tool.id, tool.name, tool.args]
    return [tool.type, tool.data]


def json_text(value: object) -> str:
    """A value as compact JSON text. Never fails: what has no JSON form is shown by its type."""
    try:
        return orjson.dumps(value, default=_stand_in, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # numbers beyond 64 bits and lone surrogates, which Python's own encoder takes
        pass
    try:
        return json.dumps(value, default=_stand_in, ensure_ascii=False, separators=(",", ":"), skipkeys=True)
    except (TypeError, ValueError, RecursionError):
        return f'"<{type(value).__name__}>"'


def _stand_in(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    return f"<{type(value).__name__}>"


_FACTORS: Final = {"anthropic": 1.23, "bedrock": 1.23, "google": 1.18, "vertex": 1.18, "mistral": 1.26}


def token_factor(provider: str) -> float:
    """How many tokens the provider's models make of what others make one of; 1.0 where that is not known."""
    return _FACTORS.get(_family(provider), 1.0)


# ------------------------------------------------------------------------------------------------------ windows


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """How much a model takes. context_window: tokens of prompt and answer together. max_output_tokens: of the answer
    alone, where it is known."""

    context_window: int
    max_output_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("context_window", "max_output_tokens"):
            given = getattr(self, name)
            if given is not None and (not isinstance(given, int) or given < 1):
                raise ValueError(f"ModelLimits.{name} is a number of tokens from 1 on, not {given!r}")


_USUAL_ANSWER: Final = 20_000
"""What is kept free for an answer where nobody says how long one may be. Much more, and a long turn would have to
shorten what it remembers at every few steps; an answer that is longer finds less room only in a prompt that is full."""

# Beginnings of model names as their makers spell them; "" is any other. An answer's limit stands here where it is
# known, and is not about what is kept free for one anyway.
_MODELS: Final[Mapping[str, ModelLimits]] = {
    "": ModelLimits(128_000),
    "claude": ModelLimits(200_000, 64_000),
    "claude-3": ModelLimits(200_000, 4_096),
    "claude-3-5": ModelLimits(200_000, 8_192),
    "claude-3-7": ModelLimits(200_000, 64_000),
    "nova-micro": ModelLimits(128_000),
    "nova-lite": ModelLimits(300_000),
    "nova-pro": ModelLimits(300_000),
    "nova-premier": ModelLimits(1_000_000),
    "llama3-8b": ModelLimits(8_192),
    "llama3-70b": ModelLimits(8_192),
    "mistral-7b": ModelLimits(32_000),
    "mixtral-8x7b": ModelLimits(32_000),
    "mistral-large-2402": ModelLimits(32_000),
    "gpt-3.5-turbo": ModelLimits(16_385, 4_096),
    "gpt-4": ModelLimits(8_192),
    "gpt-4-0125": ModelLimits(128_000, 4_096),
    "gpt-4-1106": ModelLimits(128_000, 4_096),
    "gpt-4-32k": ModelLimits(32_768),
    "gpt-4-turbo": ModelLimits(128_000, 4_096),
    "gpt-4.1": ModelLimits(1_047_576, 32_768),
    "gpt-4o": ModelLimits(128_000, 16_384),
    "o1": ModelLimits(200_000, 100_000),
    "o1-mini": ModelLimits(128_000, 65_536),
    "o1-preview": ModelLimits(128_000, 32_768),
    "o3": ModelLimits(200_000, 100_000),
    "o4-mini": ModelLimits(200_000, 100_000),
}

# What holds at one provider only.
_AT_PROVIDER: Final[Mapping[str, Mapping[str, ModelLimits]]] = {
    "anthropic": {
        "": ModelLimits(200_000),
        "claude-opus-4-6": ModelLimits(1_000_000, 64_000),
        "claude-sonnet-4-6": ModelLimits(1_000_000, 64_000),
    },
    "bedrock": {
        "": ModelLimits(200_000),
        **dict.fromkeys(("cohere.", "deepseek.", "meta.", "mistral.", "openai."), ModelLimits(128_000)),
    },
}


def model_limits(provider: str, model_id: str, overrides: Mapping[str, ModelLimits | int] | None = None) -> ModelLimits:
    """What a model takes: an override, else what is known of it, else the provider's default, else 128,000.

    overrides: a glob over `provider:model-id` or `model-id` to limits, or to the context window alone; the first that
    matches, in the mapping's order. Of what is known the longest beginning of the name counts. An ARN, a geography
    (`us.`), a vendor (`anthropic.`, `openai/`) before the name do not matter.
    """
    for pattern, limits in (overrides or {}).items():
        if fnmatchcase(f"{provider}:{model_id}", pattern) or fnmatchcase(model_id, pattern):
            return limits if isinstance(limits, ModelLimits) else ModelLimits(limits)
    table = {**_MODELS, **_AT_PROVIDER.get(_family(provider), {})}
    names = list(_names(model_id))
    return table[max((known for known in table if any(_begins(name, known) for name in names)), key=len)]


def available_input_tokens(limits: ModelLimits, max_output_tokens: int | None = None) -> int:
    """Tokens that a prompt may take so that the answer has room.

    The answer's share is `max_output_tokens` where a call sets it; else what the model can write, taken as 20,000 where
    that is not known, but at most 64,000 and at most 35% of the window. At least 0: then the answer alone would fill
    the window and no prompt fits.
    """
    window = limits.context_window
    if max_output_tokens is not None and max_output_tokens > 0:
        return max(0, window - max_output_tokens)
    return window - min(64_000, window * 35 // 100, limits.max_output_tokens or _USUAL_ANSWER)


_LABEL: Final = re.compile(r"[a-z]+(?:[0-9]*|-gov)\.")


def _names(model_id: str) -> Iterator[str]:
    """The id without the path before it, then without each of the labels that Bedrock puts before a name."""
    name = model_id.lower().rpartition("/")[2]
    yield name
    while found := _LABEL.match(name):
        name = name[found.end() :]
        yield name


def _begins(name: str, known: str) -> bool:
    """Whether a name is a known one with more after it: `gpt-4-0613` is a `gpt-4`, `gpt-4o` and `gpt-4.1` are not."""
    return name.startswith(known) and (not known[-1:].isalnum() or not re.match(r"[a-z0-9.]", name[len(known) :]))


def _family(provider: str) -> str:
    """`openai.chat` is of `openai`; some call Bedrock by its whole name."""
    head = provider.lower().partition(".")[0]
    return {"amazon-bedrock": "bedrock", "google-ai": "google"}.get(head, head)
