"""`generate`: a prompt, tools and middlewares in; an answer out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack, overload

import anyio

from ..errors import ConfigError
from ..loop import TurnRecord
from ..loop.generate import generate_turn
from ..protocol import JSONObject
from ..protocol.late_close import current_loop
from ..tools import Tool
from .call import Call, Keywords
from .prompt import MessageLike, Prompt
from .result import Generated, T
from .steps import Members, Model, model_of_steps


@overload
async def generate(
    model: Model,
    prompt: Prompt | None = None,
    *,
    output: type[T],
    system: str | None = None,
    messages: Sequence[MessageLike] = (),
    tools: Sequence[Tool] = (),
    middlewares: Members = (),
    turn_middlewares: Members = (),
    metadata: JSONObject | None = None,
    record: TurnRecord | None = None,
    **settings: Unpack[Keywords],
) -> Generated[T]: ...


@overload
async def generate(
    model: Model,
    prompt: Prompt | None = None,
    *,
    output: object = None,
    system: str | None = None,
    messages: Sequence[MessageLike] = (),
    tools: Sequence[Tool] = (),
    middlewares: Members = (),
    turn_middlewares: Members = (),
    metadata: JSONObject | None = None,
    record: TurnRecord | None = None,
    **settings: Unpack[Keywords],
) -> Generated[Any]: ...


async def generate(
    model: Model,
    prompt: Prompt | None = None,
    *,
    output: object = None,
    system: str | None = None,
    messages: Sequence[MessageLike] = (),
    tools: Sequence[Tool] = (),
    middlewares: Members = (),
    turn_middlewares: Members = (),
    metadata: JSONObject | None = None,
    record: TurnRecord | None = None,
    **settings: Unpack[Keywords],
) -> Generated[Any]:
    """Ask a model, run the tools that it calls, and ask again until it answers.

        result = await generate("openai-compatible:gpt-5", "Do I need an umbrella in Oslo?", tools=[weather])
        print(result.text)

    model: a model, a `Pipeline` that names one, or a name: then timeouts and retries are those of the preset `basic`.
    prompt: a text, messages, or V3 JSON. system: instructions. messages: the conversation so far, such as
    `result.messages`. tools: functions with `@tool`, or `Tool(...)`. output: what the answer is read as: a pydantic
    model, another type, or a JSON Schema. middlewares: around each step; turn_middlewares: around the whole turn.
    metadata: what you know of the call (tenant, user), for middlewares; it is never sent. record: filled in as the turn
    goes, and readable also where it was cancelled. settings: of the turn, see
    `neurolink_mw.loop.TurnSettings`, and of the call: `temperature`, `max_output_tokens` and the other fields of
    `CallOptions`; `tool_choice` may be a word; `provider_tools` are tools that the provider runs.

    It calls the model's `do_generate` only. Raises what the model raises at the first step, and after that a
    `TurnError` with what was done; `PolicyDenied` only where a chain is built to raise it: a refused call is an answer
    with the finish reason `content-filter`. ConfigError, TypeError and ProtocolError for arguments that cannot work.
    """
    call: Call[Any] = Call(
        prompt,
        system=system,
        messages=messages,
        tools=tools,
        output=output,
        turn_middlewares=turn_middlewares,
        metadata=metadata,
        record=record,
        given=settings,
    )
    async with model_of_steps(model, middlewares) as steps:
        around = call.around_turn(steps)
        if around is None:
            return call.generated(await generate_turn(steps.model, call.options, call.settings_for(steps), call.record))
        turn, options = around
        return call.generated_around(await turn.do_generate(options))


def generate_sync(model: Model, prompt: Prompt | None = None, **arguments: Any) -> Generated[Any]:
    """`generate` for scripts, on an event loop of its own. ConfigError where one runs already."""
    require_no_loop("generate_sync", "await generate(...)")
    return anyio.run(partial(generate, model, prompt, **arguments))


def require_no_loop(name: str, instead: str) -> None:
    """ConfigError where an event loop runs, which a sync call would hold up."""
    if current_loop() is not None:
        raise ConfigError(f"{name} would block the event loop that runs here: use {instead}")
