"""V3 to native: a call as the body of POST /v1/messages. Pure.

The shape is MessageCreateParams of the SDK's `types`, or of `types.beta` where what the call says is only there; the
names of the betas that this takes are told beside it. `temperature`, `top_p` and `top_k` are members of the body that
the SDK's types have no longer. Members are sent only where they say something.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ...protocol import (
    AssistantMessage,
    CallOptions,
    CallWarning,
    ContentOutput,
    FilePart,
    Message,
    ToolResultPart,
    UnknownPart,
)
from ...structured import AnswerTool
from .betas import needed_betas
from .cache import CacheMarks
from .errors import ErrorReader
from .json_answer import Asked, answer_tool_of, ask_for_json
from .limits import Capabilities, capabilities_of
from .media import bare_media_type, is_document
from .messages import native_messages
from .native_values import Block
from .options import part_options, read_provider_options
from .thinking import Thinking, after_history, thinking_of, token_limit
from .tool_names import ToolNames
from .tool_results import output_file
from .tools import native_choice, native_tools

DEFAULT_PROVIDER: Final = "anthropic"

BETAS: Final = "betas"
"""The member of `build_request`'s body that is no member of the API's: the names for the header `anthropic-beta`."""

# V3 options that the API has no member for, by name: the feature that the warning names.
UNSENT: Final = {"frequency_penalty": "frequencyPenalty", "presence_penalty": "presencePenalty", "seed": "seed"}
# Member by V3 option, and the feature that a warning names.
_SAMPLING: Final = {"temperature": "temperature", "top_p": "topP", "top_k": "topK"}


class Document(NamedTuple):
    """A document of the prompt, as citations name it by its place among them."""

    title: str | None = None
    filename: str | None = None
    media_type: str | None = None


class Expected(NamedTuple):
    """How an answer is read, from what was asked.

    answer: the tool that carries a JSON answer. tool_names: the caller's names by those that were sent, where they
    differ. documents: of the prompt, in order. no_calls: the caller's choice was `none`, so that a call of one of its
    tools comes against it; a forced `final_result` may stand for `none` in the request.
    """

    answer: AnswerTool | None = None
    tool_names: Mapping[str, str] = {}
    documents: tuple[Document, ...] = ()
    no_calls: bool = False


def build_request(
    model_id: str,
    options: CallOptions,
    *,
    provider: str = DEFAULT_PROVIDER,
    stream: bool = False,
    capabilities: Capabilities | None = None,
) -> tuple[dict[str, object], tuple[CallWarning, ...]]:
    """The body of a request, and what of the call it could not express.

    Besides the API's members it holds `betas` where there are any: the names for the header `anthropic-beta`, sorted,
    those of `options.headers` among them. provider: the name in errors; provider options are looked up under
    `anthropic`. stream: ask for events. capabilities: what the model takes, instead of the table's word.

    None means unset; 0 and [] are sent. `options.metadata` and `options.context` never are. Raises InvalidRequestError
    that names the place, as in `prompt[0].content[1]`, for what the API cannot carry; ConfigError for a response format
    whose schema is none.
    """
    errors = ErrorReader(provider, model_id)
    warnings: list[CallWarning] = []
    capabilities = capabilities or capabilities_of(model_id)
    own = read_provider_options(options, errors, warnings)
    warnings.extend(
        CallWarning("unsupported", feature, "the API has no member for it")
        for name, feature in UNSENT.items()
        if getattr(options, name) is not None
    )
    thinking = thinking_of(options, own, capabilities, errors, warnings)
    names = ToolNames(options.tools or (), errors)
    marks = CacheMarks(errors, automatic="cache_control" in own.members)
    system, messages = native_messages(options.prompt, errors, warnings, own=own, names=names, marks=marks)
    if not messages:
        raise errors.refused("prompt: none of its messages says anything")
    thinking = after_history(thinking, messages, capabilities, warnings)
    limit, thinking = token_limit(options, thinking, capabilities, model_id, warnings)
    tools = native_tools(options, own, capabilities, marks, errors, warnings, stream=stream)
    marks.tell(warnings)
    can_force = capabilities.forced_choice and not thinking.on
    choice = native_choice(options, own, names, errors, warnings, has_tools=bool(tools), can_force=can_force)
    asked = ask_for_json(
        Asked(system, tools, choice),
        options,
        own,
        capabilities,
        names,
        warnings,
        can_force=can_force,
        cites=_cites(messages),
        stream=stream,
    )
    native: dict[str, object] = {"model": model_id, "max_tokens": limit}
    if asked.system:
        native["system"] = asked.system
    native["messages"] = _without_trailing_space(messages)
    if asked.tools:
        native["tools"] = asked.tools
    if asked.choice is not None:
        native["tool_choice"] = asked.choice
    native.update(_sampling(options, capabilities, thinking, errors, warnings))
    if options.stop_sequences is not None:
        native["stop_sequences"] = list(options.stop_sequences)
    if thinking.native is not None:
        native["thinking"] = thinking.native
    if output := _output_config(own.output_config, thinking, asked.format):
        native["output_config"] = output
    native.update(own.members)
    if stream:
        native["stream"] = True
    if betas := needed_betas(native) | own.betas:
        native[BETAS] = sorted(betas)
    return native, tuple(warnings)


def expected_of(options: CallOptions, native: Mapping[str, object]) -> Expected:
    """How the answer to a request is read. native: what `build_request` made of the options."""
    names = ToolNames(options.tools or (), ErrorReader())
    answer = answer_tool_of(options, native)
    no_calls = bool(options.tools) and options.tool_choice is not None and options.tool_choice.type == "none"
    documents = _in_order_sent(_documents(options.prompt), native.get("messages"))
    return Expected(answer, names.renamed(), documents, no_calls)


def _sampling(
    options: CallOptions,
    capabilities: Capabilities,
    thinking: Thinking,
    errors: ErrorReader,
    warnings: list[CallWarning],
) -> Block:
    native: Block = {}
    for name, feature in _SAMPLING.items():
        setting = getattr(options, name)
        if setting is None:
            continue
        if capabilities.sampling == "none" or thinking.on:
            why = "while it thinks" if thinking.on else "at all"
            warnings.append(CallWarning("unsupported", feature, f"left out: this model does not take it {why}"))
            continue
        if isinstance(setting, float) and not math.isfinite(setting):
            raise errors.refused(f"{name}: is a finite number")
        native[name] = setting
    temperature = native.get("temperature")
    if isinstance(temperature, int | float) and not 0 <= temperature <= 1:
        native["temperature"] = min(1, max(0, temperature))
        details = f"{temperature} was sent as {native['temperature']}: the API takes 0 to 1"
        warnings.append(CallWarning("unsupported", "temperature", details))
    if capabilities.sampling == "one" and {"temperature", "top_p"} <= native.keys():
        del native["top_p"]
        details = "left out: this model takes only one of temperature and topP"
        warnings.append(CallWarning("unsupported", "topP", details))
    return native


def _output_config(given: Mapping[str, object], thinking: Thinking, format: Block | None) -> Block:
    native = {name: item for name, item in given.items() if name != "effort"}
    if thinking.effort is not None:
        native["effort"] = thinking.effort
    if format is not None:
        native["format"] = format
    return native


def _cites(messages: list[Block]) -> bool:
    return any(
        isinstance(citations := block.get("citations"), Mapping) and citations.get("enabled") is True
        for block in _all_blocks(messages)
    )


def _without_trailing_space(messages: list[Block]) -> list[Block]:
    """An answer that the model is to continue must not end in white space: the API refuses it."""
    content = messages[-1].get("content")
    if messages[-1]["role"] != "assistant" or not isinstance(content, list):
        return messages
    last = content[-1]
    text = last.get("text") if last.get("type") == "text" else None
    if not isinstance(text, str) or text == text.rstrip():
        return messages
    return [*messages[:-1], {**messages[-1], "content": [*content[:-1], {**last, "text": text.rstrip()}]}]


def _in_order_sent(documents: Iterable[Document], messages: object) -> tuple[Document, ...]:
    """The documents in the order in which they are sent, by which the API counts them: results stand first there."""
    known, in_order = list(documents), []
    for block in _all_blocks(messages):
        if block.get("type") != "document":
            continue
        title = block.get("title")
        same = [one for one in known if one.title == title] or [Document(title if isinstance(title, str) else None)]
        in_order.append(same[0])
        if same[0] in known:
            known.remove(same[0])
    return tuple(in_order)


def _all_blocks(messages: object) -> Iterator[Mapping[str, object]]:
    """The blocks of messages, those in results among them."""
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, Mapping) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, Mapping):
                yield block
                yield from _all_blocks([block])


def _documents(prompt: Sequence[Message]) -> Iterable[Document]:
    """The documents of a prompt in order, tools' results among them: the API counts all of them."""
    for message in prompt:
        for part in message.content if not isinstance(message.content, str) else ():
            if isinstance(part, FilePart):
                yield from _document(part)
            elif isinstance(part, UnknownPart):
                yield from _foreign_document(part)
            elif isinstance(part, ToolResultPart) and isinstance(part.output, ContentOutput):
                if isinstance(message, AssistantMessage):
                    continue
                files = (output_file(piece, "", ErrorReader()) for piece in part.output.value)
                yield from (one for file in files if file is not None for one in _document(file))


def _document(part: FilePart) -> Iterable[Document]:
    if is_document(part):
        title = part_options(part.provider_options).get("title", part.filename)
        name = title if isinstance(title, str) else None
        yield Document(name, part.filename, bare_media_type(part.media_type))


def _foreign_document(part: UnknownPart) -> Iterable[Document]:
    said = part.data.get("providerOptions")
    block = part_options(said).get("block") if isinstance(said, Mapping) else None
    if isinstance(block, Mapping) and block.get("type") == "document":
        title = block.get("title")
        yield Document(title if isinstance(title, str) else None, None, "text/plain")
