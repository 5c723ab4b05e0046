"""What the Messages API refuses although it is spelled as JSON: members, settings, tools and the cache.

Where the API's message is known from its reports it is used, because clients read it. Rules of single models (who takes
sampling parameters, a prefill, a system message among the others) are left out: they differ, and change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from neurolink_mw.testing.wire import anthropic_turns
from neurolink_mw.testing.wire.anthropic_members import BETAS, CHOICES, HOSTED, REQUEST, THINKING, TOOL, Host, Members
from neurolink_mw.testing.wire.anthropic_request import Json, Malformed, Request, mapping, request_of

TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
CACHE_LIMIT: Final = 4
LEAST_BUDGET: Final = 1024
LEAST_TOP_P: Final = 0.95
"""What thinking still takes, as the API's documentation of it says."""

Faults = Iterator[str]


def faults(body: Json, *, host: Host = "anthropic", betas: Sequence[str] = ()) -> list[str]:
    """Every breach in a request body, the one the API would report first at the front; empty where it is sound.

    Args:
        body: the JSON of the request.
        host: whose address it was sent to.
        betas: the names in the header `anthropic-beta`.
    """
    spelled = list(members(body, host))
    if spelled:
        return spelled
    try:
        request = request_of(body, host=host, betas=betas)
        return [fault for rule in RULES for fault in rule(request)]
    except Malformed as error:
        return [str(error)]


def members(body: Json, host: Host) -> Faults:
    """The members of the whole request: those it must have, and no unknown one."""
    own = HOSTED[host]
    yield from _members(body, Members(own.required + REQUEST.required, own.optional + REQUEST.optional), "")


def betas(request: Request) -> Faults:
    """Members that only a beta knows."""
    for name, beginnings in BETAS.items():
        if request.body.get(name) is not None and not any(beta.startswith(beginnings) for beta in request.betas):
            yield f"{name}: Extra inputs are not permitted"


def numbers(request: Request) -> Faults:
    """`max_tokens` and the sampling parameters. No tokens at all are allowed: so a cache is filled in advance."""
    tokens = request.body["max_tokens"]
    if not _is_whole(tokens):
        yield "max_tokens: Input should be a valid integer"
    elif isinstance(tokens, int) and tokens < 0:
        yield "max_tokens: Input should be greater than or equal to 0"
    for name in ("temperature", "top_p"):
        value = request.body.get(name)
        if value is not None and not _is_between(value, 0, 1):
            yield f"{name}: Input should be a number from 0 to 1"
    top_k = request.body.get("top_k")
    if top_k is not None and not _is_whole(top_k):
        yield "top_k: Input should be a valid integer"
    for position, sequence in enumerate(_items(request.body.get("stop_sequences"))):
        if not isinstance(sequence, str):
            yield f"stop_sequences.{position}: Input should be a valid string"
        elif not sequence.strip():
            yield "stop_sequences: each stop sequence must contain non-whitespace"


def thinking(request: Request) -> Faults:
    """The budget, and what does not go with thinking."""
    asked = request.thinking
    if asked is None:
        return
    kind = asked.get("type")
    if not isinstance(kind, str) or kind not in THINKING:
        yield f"thinking.type: Input should be one of {', '.join(map(repr, THINKING))}"
        return
    yield from _members(asked, THINKING[kind], f"thinking.{kind}.")
    budget, tokens = asked.get("budget_tokens"), request.body["max_tokens"]
    if kind == "enabled" and isinstance(budget, int):
        if budget < LEAST_BUDGET:
            yield f"thinking.enabled.budget_tokens: Input should be greater than or equal to {LEAST_BUDGET}"
        if isinstance(tokens, int) and budget >= tokens and not _interleaved(request):
            yield "`max_tokens` must be greater than `thinking.budget_tokens`."
    if request.thinks:
        yield from _beside_thinking(request)


def tools(request: Request) -> Faults:
    """Names and schemas, and a choice among the tools. A toolset has no name of its own."""
    for index, tool in enumerate(request.tools):
        if tool.get("type") in (None, "custom"):
            yield from _custom(tool, f"tools.{index}.custom")
    names = [str(tool["name"]) for tool in request.tools if "name" in tool]
    if any(count > 1 for count in Counter(names).values()):
        yield "tools: Tool names must be unique."
    choice = request.tool_choice
    if choice is None:
        return
    kind = choice.get("type")
    if not isinstance(kind, str) or kind not in CHOICES:
        yield f"tool_choice.type: Input should be one of {', '.join(map(repr, CHOICES))}"
        return
    yield from _members(choice, CHOICES[kind], f"tool_choice.{kind}.")
    if not request.tools:
        yield "tool_choice may only be specified while providing tools."
    elif kind == "tool" and "name" in choice and choice["name"] not in names and len(names) == len(request.tools):
        yield f"Tool '{choice['name']}' not found in provided tools"


def cache(request: Request) -> Faults:
    """At most four breakpoints, none on an empty text, and the longer-lived ones first."""
    marked = list(_marked(request))
    count = len(marked) + (request.body.get("cache_control") is not None)
    if count > CACHE_LIMIT:
        yield f"A maximum of {CACHE_LIMIT} blocks with cache_control may be provided. Found {count}."
    short = False
    for place, owner in marked:
        control = mapping(owner["cache_control"])
        if control.get("type") != "ephemeral":
            yield f"{place}.cache_control.type: Input should be 'ephemeral'"
        if control.get("ttl", "5m") not in ("5m", "1h"):
            yield f"{place}.cache_control.ttl: Input should be '5m' or '1h'"
        if owner.get("type") == "text" and owner.get("text") == "":
            yield f"{place}.text: cache_control cannot be set for empty text blocks"
        if short and control.get("ttl") == "1h":
            yield (
                f"{place}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
                "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, "
                "`messages`."
            )
        short = short or control.get("ttl", "5m") == "5m"


def output_format(request: Request) -> Faults:
    """Native JSON output takes objects that are closed."""
    asked = mapping(request.body.get("output_config")).get("format")
    if asked is None:
        return
    if mapping(asked).get("type") != "json_schema":
        yield "output_config.format.type: Input should be 'json_schema'"
    elif not isinstance(mapping(asked).get("schema"), Mapping):
        yield "output_config.format.schema: Field required"
    elif any(schema.get("additionalProperties") is not False for schema in _object_schemas(mapping(asked)["schema"])):
        yield "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"


RULES: Final[tuple[Callable[[Request], Faults], ...]] = (
    betas,
    numbers,
    thinking,
    tools,
    output_format,
    anthropic_turns.spelling,
    cache,
    anthropic_turns.system_messages,
    anthropic_turns.texts,
    anthropic_turns.thoughts,
    anthropic_turns.leading_thought,
    anthropic_turns.unique_calls,
    anthropic_turns.pairing,
    anthropic_turns.served_results,
    anthropic_turns.final_assistant_text,
)


def _beside_thinking(request: Request) -> Faults:
    # Some models take a forced choice beside adaptive thinking: the strictest rule stands for them all.
    temperature, top_p = request.body.get("temperature"), request.body.get("top_p")
    if temperature is not None and temperature != 1:
        yield "`temperature` may only be set to 1 when thinking is enabled."
    if isinstance(top_p, int | float) and top_p < LEAST_TOP_P:
        yield f"`top_p` must be greater than or equal to {LEAST_TOP_P} or unset when thinking is enabled."
    if request.body.get("top_k") is not None:
        yield "`top_k` must be unset when thinking is enabled."
    if mapping(request.tool_choice).get("type") in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."


def _interleaved(request: Request) -> bool:
    """Whether the budget is for all thinking of a turn with tools, which may exceed the tokens of one answer."""
    return any(beta.startswith("interleaved-thinking-") for beta in request.betas)


def _custom(tool: Json, place: str) -> Faults:
    yield from _members(tool, TOOL, f"{place}.")
    name = tool.get("name")
    if isinstance(name, str) and len(name) > 128:
        yield f"{place}.name: String should have at most 128 characters"
    elif "name" in tool and not (isinstance(name, str) and TOOL_NAME.fullmatch(name)):
        yield f"{place}.name: String should match pattern '^{TOOL_NAME.pattern}$'"
    if "input_schema" not in tool:
        return
    schema = tool["input_schema"]
    if not isinstance(schema, Mapping):
        yield f"{place}.input_schema: Input should be an object"
    elif "type" not in schema:
        yield f"{place}.input_schema.type: Field required"
    elif schema["type"] != "object":
        yield f"{place}.input_schema.type: Input should be 'object'"


def _members(owner: Json, declared: Members, prefix: str) -> Faults:
    """Of an object inside the request, which has a `type` besides, or of the request itself where `prefix` is empty."""
    for name in declared.required:
        if name not in owner:
            yield f"{prefix}{name}: Field required"
    known = {*declared.required, *declared.optional}
    for name in owner:
        if name not in known and not (prefix and name == "type"):
            yield f"{prefix}{name}: Extra inputs are not permitted"


def _marked(request: Request) -> Iterator[tuple[str, Json]]:
    """What carries `cache_control`, in the order the API reads it."""
    for index, tool in enumerate(request.tools):
        if tool.get("cache_control") is not None:
            yield f"tools.{index}", tool
    for block in (*request.system, *(block for message in request.messages for block in message.blocks)):
        for one in (*block.inner(), block):
            if one.value.get("cache_control") is not None:
                yield one.place, one.value


def _object_schemas(schema: object) -> Iterator[Json]:
    if isinstance(schema, Mapping):
        if schema.get("type") == "object":
            yield schema
        for name, value in schema.items():
            if name not in ("const", "default", "enum", "examples"):
                yield from _object_schemas(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _object_schemas(item)


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_between(value: object, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
