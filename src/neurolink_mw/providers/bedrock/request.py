"""V3 to native: a call as the arguments of boto3's `converse` and `converse_stream`. Pure.

The shape is ConverseRequest of botocore's service model `bedrock-runtime`. Members are sent only where they say
something: botocore refuses empty tool lists, and Converse blank texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from ...protocol import CallOptions, CallWarning
from ...structured import AnswerTool
from .capabilities import Capabilities, capabilities_of
from .errors import ErrorReader
from .json_answer import answer_tool_of, comes_by_tool, json_answer
from .messages import native_messages
from .native_values import Block
from .options import ProviderOptions, read_provider_options
from .thinking import ANSWER_TOKENS, Thinking, after_history, thinking_of
from .tool_ids import native_names
from .tools import native_tools, plan_tools, with_no_calls

DEFAULT_PROVIDER: Final = "bedrock"

# Member of inferenceConfig by V3 option.
SETTINGS: Final = {
    "max_output_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop_sequences": "stopSequences",
}
# V3 options that Converse has no member for, by name: the feature that the warning names.
UNSENT: Final = {"frequency_penalty": "frequencyPenalty", "presence_penalty": "presencePenalty", "seed": "seed"}
_SAMPLING: Final = {"temperature": "temperature", "top_p": "topP"}
_STOP_SEQUENCE: Final = "/delta/stop_sequence"
_MOST_PATHS = 10


class Expected(NamedTuple):
    """How an answer is read, from what was asked.

    answer: the tool that carries a JSON answer. no_calls: the choice was `none`, so that a call comes against it.
    tool_names: the caller's names by those that were sent, where they differ.
    """

    answer: AnswerTool | None = None
    no_calls: bool = False
    tool_names: Mapping[str, str] = {}


def build_request(
    model_id: str,
    options: CallOptions,
    *,
    provider: str = DEFAULT_PROVIDER,
    stream: bool = False,
    capabilities: Capabilities | None = None,
) -> tuple[dict[str, object], tuple[CallWarning, ...]]:
    """The keyword arguments of `converse`, or of `converse_stream`, and what of the call they could not express.

    provider: the name in errors; provider options are looked up under `bedrock`. stream: which of the two it is; a
    guardrail of a stream always says how it is processed, `sync` where the call does not. capabilities: what the model
    takes, instead of the table's word.

    None means unset; 0 and [] are sent. `options.metadata`, `options.context` and `options.headers` never are. Raises
    InvalidRequestError that names the place, as in `prompt[0].content[1]`, for what Converse cannot carry.
    """
    errors = ErrorReader(provider, model_id)
    warnings: list[CallWarning] = []
    capabilities = capabilities or capabilities_of(model_id)
    own = read_provider_options(options, errors, warnings)
    warnings.extend(_unsent_warnings(options))
    thinking = thinking_of(options, own, capabilities, errors, warnings)
    tools = native_tools(options, capabilities, errors, warnings)
    system, messages = native_messages(
        options.prompt,
        model_id,
        errors,
        warnings,
        capabilities=capabilities,
        late_system=own.late_system,
        bucket_owner=own.bucket_owner,
        with_tools=bool(tools) or comes_by_tool(options, own, capabilities),
    )
    thinking = after_history(thinking, own, messages, warnings)
    plan = plan_tools(options, tools, messages, errors, warnings, thinking=thinking.on)
    declared = [] if plan.config is None else tools
    answer = json_answer(options, declared, own, capabilities, errors, warnings, thinking=thinking.on)
    plan = plan.with_answer(answer, tools=declared)
    if answer.system is not None:
        system = [*system, answer.system]
    native: dict[str, object] = {"modelId": model_id}
    if system:
        native["system"] = system
    if messages:
        native["messages"] = _without_trailing_space(with_no_calls(messages) if plan.forbidden else messages)
    elif ":prompt/" not in model_id:  # a managed prompt has messages of its own
        raise errors.refused("prompt: none of its messages says anything")
    if plan.config is not None:
        native["toolConfig"] = plan.config
    if inference := _inference(options, own, thinking, errors, warnings):
        native["inferenceConfig"] = inference
    output = _output_config(own, answer.format, thinking)
    if output:
        native["outputConfig"] = output
    if fields := _model_fields(options, own, capabilities, thinking, "effort" in output, warnings):
        native["additionalModelRequestFields"] = fields
    native.update(_further(own, capabilities, stream))
    return native, tuple(warnings)


def expected_of(options: CallOptions, native: Mapping[str, object]) -> Expected:
    """How the answer to a request is read. native: what `build_request` made of the options."""
    answer = answer_tool_of(options, native)
    names = native_names(options.tools or (), ErrorReader())
    return Expected(
        answer,
        options.tool_choice is not None and options.tool_choice.type == "none",
        {native_name: name for native_name, name in names.items() if native_name != name},
    )


def _unsent_warnings(options: CallOptions) -> list[CallWarning]:
    unsent = [feature for name, feature in UNSENT.items() if getattr(options, name) is not None]
    warnings = [CallWarning("unsupported", feature, "Converse has no member for it") for feature in unsent]
    if options.headers:
        warnings.append(CallWarning("unsupported", "headers", "this client sends none but its own"))
    return warnings


def _without_trailing_space(messages: list[dict[str, object]]) -> list[dict[str, object]]:
    """An answer that the model is to continue must not end in white space: models refuse it."""
    content = messages[-1]["content"]
    last = content[-1] if messages[-1]["role"] == "assistant" and isinstance(content, list) else {}
    text = last.get("text") if isinstance(last, Mapping) else None
    if not isinstance(text, str) or text == text.rstrip() or not isinstance(content, list):
        return messages
    return [*messages[:-1], {**messages[-1], "content": [*content[:-1], {"text": text.rstrip()}]}]


def _inference(
    options: CallOptions, own: ProviderOptions, thinking: Thinking, errors: ErrorReader, warnings: list[CallWarning]
) -> dict[str, object]:
    native: dict[str, object] = {}
    for name, member in SETTINGS.items():
        setting = getattr(options, name)
        if setting is None:
            continue
        if isinstance(setting, float) and not math.isfinite(setting):
            raise errors.refused(f"{name}: is a finite number")
        if thinking.on and name in _SAMPLING:
            warnings.append(CallWarning("unsupported", _SAMPLING[name], _NOT_WHILE_REASONING))
            continue
        native[member] = list(setting) if name == "stop_sequences" else setting
    temperature = native.get("temperature")
    if isinstance(temperature, int | float) and not 0 <= temperature <= 1:
        native["temperature"] = min(1, max(0, temperature))
        details = f"{temperature} was sent as {native['temperature']}: Converse takes 0 to 1"
        warnings.append(CallWarning("unsupported", "temperature", details))
    if thinking.budget:
        asked = options.max_output_tokens
        native["maxTokens"] = thinking.budget + (ANSWER_TOKENS if asked is None else asked)
    given = own.members.get("inferenceConfig")
    return {**native, **given} if isinstance(given, dict) else native


def _output_config(own: ProviderOptions, format: Block | None, thinking: Thinking) -> dict[str, object]:
    given = own.members.get("outputConfig")
    native: dict[str, object] = dict(given) if isinstance(given, dict) else {}
    if format is not None:
        native["textFormat"] = format
    # Beside the format the level goes where the format is; two places for one object of the model would be a guess.
    if thinking.effort is not None and native:
        native.setdefault("effort", thinking.effort)
    return native


def _model_fields(
    options: CallOptions,
    own: ProviderOptions,
    capabilities: Capabilities,
    thinking: Thinking,
    has_effort: bool,
    warnings: list[CallWarning],
) -> dict[str, object]:
    """Fields of the model's own. What the caller gives wins, an object's entries one by one."""
    fields: dict[str, object] = dict(thinking.fields)
    if thinking.effort is not None and not has_effort:
        fields["output_config"] = {"effort": thinking.effort}
    if options.top_k is not None:
        if thinking.on:
            warnings.append(CallWarning("unsupported", "topK", _NOT_WHILE_REASONING))
        elif capabilities.top_k:
            *outer, name = capabilities.top_k
            fields.update({outer[0]: {name: options.top_k}} if outer else {name: options.top_k})
        else:
            details = "no field for it is known of this model: say it in additionalModelRequestFields"
            warnings.append(CallWarning("unsupported", "topK", details))
    if own.beta:
        fields["anthropic_beta"] = own.beta
    given = own.members.get("additionalModelRequestFields")
    for name, item in given.items() if isinstance(given, dict) else ():
        mine = fields.get(name)
        fields[name] = {**mine, **item} if isinstance(mine, dict) and isinstance(item, dict) else item
    return fields


def _further(own: ProviderOptions, capabilities: Capabilities, stream: bool) -> dict[str, object]:
    built = {"inferenceConfig", "outputConfig", "additionalModelRequestFields"}
    native = {name: item for name, item in sorted(own.members.items()) if name not in built}
    guardrail = native.get("guardrailConfig")
    if isinstance(guardrail, dict):
        guardrail = {key: item for key, item in guardrail.items() if item is not None}
        if stream:
            # Said explicitly: asynchronous processing shows text before it is judged, and masks nothing.
            native["guardrailConfig"] = {"streamProcessingMode": "sync", **guardrail}
        else:
            native["guardrailConfig"] = {key: it for key, it in guardrail.items() if key != "streamProcessingMode"}
    paths = native.get("additionalModelResponseFieldPaths", [])
    if capabilities.stop_sequence and isinstance(paths, list) and len(paths) < _MOST_PATHS:
        native["additionalModelResponseFieldPaths"] = [*paths, *({_STOP_SEQUENCE} - set(paths))]
    return native


_NOT_WHILE_REASONING = "left out: this model does not take it while it reasons"
