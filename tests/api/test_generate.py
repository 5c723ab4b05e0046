"""`generate`: what may be given, and what comes back."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from neurolink_mw import (
    CallOptions,
    GenerateResult,
    Middleware,
    Pipeline,
    Tool,
    generate,
    generate_sync,
    stream,
    to_json,
    tool,
    wrap_model,
)
from neurolink_mw.errors import (
    ConfigError,
    PolicyDenied,
    ProtocolError,
    RateLimitError,
    SchemaValidationError,
    TurnError,
)
from neurolink_mw.loop import TurnRecord
from neurolink_mw.protocol import (
    AssistantMessage,
    FinishReason,
    InputTokens,
    LanguageModel,
    Message,
    OutputTokens,
    ProviderTool,
    Reasoning,
    SystemMessage,
    Text,
    TextPart,
    ToolCall,
    ToolChoice,
    Usage,
    UserMessage,
    user,
)
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel
from neurolink_mw.roles import RegexTransform, RequestPolicy, ResponsePolicy, Verdict, View, allow, deny
from neurolink_mw.testing import ScriptedModel, wire
from neurolink_mw.testing.wire import openai

pytestmark = pytest.mark.anyio

COST = Usage(InputTokens(10), OutputTokens(2))


@tool
async def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


CALL = GenerateResult(
    (Text("Let me see."), ToolCall("c1", "weather", '{"city": "Oslo"}')), FinishReason("tool-calls"), COST
)


def two_steps(answer: str = "It is sunny.") -> ScriptedModel:
    return ScriptedModel([CALL, GenerateResult((Text(answer),), usage=COST)])


async def prompt_of(*arguments: Any, **named: Any) -> Sequence[Message]:
    model = ScriptedModel("ok")
    await generate(model, *arguments, **named)
    return model.calls[0].options.prompt


# -- what may be asked


async def test_a_prompt_may_be_a_text() -> None:
    assert await prompt_of("Hello") == (user("Hello"),)


async def test_a_prompt_may_be_messages() -> None:
    messages = [user("Hi"), AssistantMessage([TextPart("Hello")]), user("How are you?")]
    assert await prompt_of(messages) == tuple(messages)


async def test_a_prompt_may_be_v3_json() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    ]
    assert await prompt_of(messages) == (SystemMessage("Be brief."), user("Hi"))


async def test_a_text_may_stand_for_the_content_of_a_message() -> None:
    assert await prompt_of([{"role": "user", "content": "Hi"}]) == (user("Hi"),)


async def test_whole_call_options_or_their_json_are_a_prompt_too() -> None:
    options = CallOptions((user("Hi"),), temperature=0.5)
    for given in (options, to_json(options)):
        model = ScriptedModel("ok")
        await generate(model, given)  # type: ignore[arg-type]  # JSON of options is a mapping
        assert (model.calls[0].options.prompt, model.calls[0].options.temperature) == ((user("Hi"),), 0.5)


async def test_system_and_earlier_messages_come_first() -> None:
    earlier = [user("Hi"), AssistantMessage([TextPart("Hello")])]
    assert await prompt_of("And now?", system="Be brief.", messages=earlier) == (
        SystemMessage("Be brief."),
        *earlier,
        user("And now?"),
    )


async def test_another_system_text_takes_the_place_of_the_one_in_a_conversation() -> None:
    earlier = [SystemMessage("Be long."), user("Hi")]
    assert await prompt_of(messages=earlier, system="Be brief.") == (SystemMessage("Be brief."), user("Hi"))


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (None, "there is nothing to answer"),
        ("  ", "the prompt is empty"),
        ([SystemMessage("Be brief.")], "there is nothing to answer"),
        (7, "prompt is a list of messages, not int"),
        ([7], r"prompt\[0\] is a message or its JSON, not int"),
        ([user("Hi"), {"role": "nobody", "content": []}], "role"),
    ],
)
async def test_what_is_no_prompt_is_refused(prompt: Any, message: str) -> None:
    with pytest.raises((ConfigError, ProtocolError), match=message):
        await generate(ScriptedModel("ok"), prompt)


async def test_options_of_the_call_and_settings_of_the_turn_are_keyword_arguments() -> None:
    model = two_steps()
    search = ProviderTool("vendor.search", "search")
    result = await generate(
        model,
        "Hi",
        tools=[weather],
        provider_tools=[search],
        temperature=0.2,
        max_output_tokens=50,
        stop_sequences=["END"],
        metadata={"tenant": "t1"},
        tool_choice="required",
        max_steps=1,
    )
    options = model.calls[0].options
    assert (options.temperature, options.max_output_tokens, options.stop_sequences) == (0.2, 50, ("END",))
    assert (options.metadata, options.tool_choice) == ({"tenant": "t1"}, ToolChoice("required"))
    assert options.tools == (weather.definition, search)
    assert result.stopped_by == "step-limit"


@pytest.mark.parametrize("argument", ["temprature", "max_step", "tool"])
async def test_a_misspelt_argument_is_named(argument: str) -> None:
    with pytest.raises(TypeError, match=f"there is no argument '{argument}'"):
        await generate(ScriptedModel("ok"), "Hi", **{argument: 1})  # type: ignore[call-overload]  # what it is about


async def test_a_tool_choice_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match='tool_choice is "auto"'):
        await generate(ScriptedModel("ok"), "Hi", tools=[weather], tool_choice="always")


# -- what comes back


async def test_the_result_has_the_answer_and_how_it_came_about() -> None:
    result = await generate(two_steps(), "Do I need an umbrella?", tools=[weather])
    assert (result.text, result.finish_reason.unified, result.stopped_by) == ("It is sunny.", "stop", "answer")
    assert [step.text for step in result.steps] == ["Let me see.", "It is sunny."]
    assert [(one.tool_name, one.status) for one in result.tool_executions] == [("weather", "ok")]
    assert result.tools_used == ("weather",)
    assert result.usage == COST + COST
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]


async def test_a_conversation_is_gone_on_with_by_its_messages() -> None:
    first = await generate(two_steps(), "Do I need an umbrella?", tools=[weather])
    model = ScriptedModel("No.")
    second = await generate(model, "Are you sure?", messages=first.messages, tools=[weather])
    assert model.calls[0].options.prompt == (*first.messages, user("Are you sure?"))
    assert len(second.messages) == 6


async def test_reasoning_is_that_of_all_steps() -> None:
    steps = [GenerateResult((Reasoning("One. "), *CALL.content)), GenerateResult((Reasoning("Two."), Text("done")))]
    result = await generate(ScriptedModel(steps), "Hi", tools=[weather])
    assert result.reasoning_text == "One. Two."


async def test_a_result_shows_no_content() -> None:
    result = await generate(two_steps("my secret"), "Hi", tools=[weather])
    assert "secret" not in repr(result)
    assert "Oslo" not in repr(result)


async def test_failures_are_raised_as_by_the_loop() -> None:
    with pytest.raises(RateLimitError):
        await generate(ScriptedModel([RateLimitError("slow")]), "Hi")
    with pytest.raises(TurnError):
        await generate(ScriptedModel([CALL, RateLimitError("slow")]), "Hi", tools=[weather])


# -- typed output


class Forecast(BaseModel):
    city: str
    degrees: int


async def test_an_output_is_asked_for_and_read_as_its_type() -> None:
    model = ScriptedModel('{"city": "Oslo", "degrees": 4}')
    result = await generate(model, "Hi", output=Forecast)
    assert result.output == Forecast(city="Oslo", degrees=4)
    asked = model.calls[0].options.response_format
    assert asked is not None
    assert (asked.type, asked.name) == ("json", "Forecast")


async def test_an_output_whose_root_is_no_object_is_under_a_key_and_taken_out_of_it() -> None:
    model = ScriptedModel('{"value": [1, 2]}')
    assert (await generate(model, "Hi", output=list[int])).output == [1, 2]
    asked = model.calls[0].options.response_format
    assert asked is not None
    assert (asked.schema or {})["type"] == "object"


@pytest.mark.parametrize(("text", "kind", "value"), [('{"value": "3"}', str, "3"), ('{"value": 3}', int, 3)])
async def test_a_text_is_not_taken_for_its_json(text: str, kind: type, value: object) -> None:
    assert (await generate(ScriptedModel(text), "Hi", output=kind)).output == value


async def test_an_output_may_be_a_json_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert (await generate(ScriptedModel('{"a": 1}'), "Hi", output=schema)).output == {"a": 1}


@pytest.mark.parametrize("text", ["no json", '{"city": "Oslo"}', '{"value": 3}', ""])
async def test_what_does_not_fit_is_an_error_that_says_why_and_the_result_stays(text: str) -> None:
    result = await generate(ScriptedModel([GenerateResult((Text(text),))]), "Hi", output=Forecast)
    assert result.text == text
    with pytest.raises(SchemaValidationError) as caught:
        _ = result.output
    assert caught.value.problems


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"city": "Oslo", "degrees": 4}\n```',
        'Here it is: {"city": "Oslo", "degrees": 4}. Anything else?',
        "{'city': 'Oslo', 'degrees': 4,}",
        'First {"city": "Rome"}, then {"city": "Oslo", "degrees": 4}',
    ],
)
async def test_an_output_with_words_around_it_or_loose_ends_is_read(text: str) -> None:
    result = await generate(ScriptedModel(text), "Hi", output=Forecast)
    assert result.output == Forecast(city="Oslo", degrees=4)
    assert result.text == text


async def test_an_output_that_breaks_off_is_not_completed() -> None:
    with pytest.raises(SchemaValidationError):
        _ = (await generate(ScriptedModel('{"city": "Oslo", "degrees": 4'), "Hi", output=Forecast)).output


async def test_a_list_that_the_model_did_not_put_under_the_key_is_read_where_it_fits() -> None:
    assert (await generate(ScriptedModel("```json\n[1, 2]\n```"), "Hi", output=list[int])).output == [1, 2]
    with pytest.raises(SchemaValidationError):
        _ = (await generate(ScriptedModel('["a"]'), "Hi", output=list[int])).output


async def test_an_answer_that_was_cut_is_no_output() -> None:
    cut = GenerateResult((Text('{"city": "Oslo", "degrees": 4}'),), FinishReason("length"))
    with pytest.raises(SchemaValidationError, match="the answer is not whole: it ended with 'length'"):
        _ = (await generate(ScriptedModel([cut]), "Hi", output=Forecast)).output


async def test_without_output_there_is_none() -> None:
    with pytest.raises(ConfigError, match="output="):
        _ = (await generate(ScriptedModel("ok"), "Hi")).output


# -- what stands around


class Journal(Middleware):
    def __init__(self, id: str, notes: list[str]) -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]  # a chain may have many of a kind
        self.notes = notes

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        self.notes.append(self.id)
        return await model.do_generate(options)


async def test_middlewares_stand_around_each_step_and_turn_middlewares_around_the_turn() -> None:
    notes: list[str] = []
    await generate(
        two_steps(),
        "Hi",
        tools=[weather],
        middlewares=[Journal("step", notes)],
        turn_middlewares=[Journal("turn", notes)],
    )
    assert notes == ["turn", "step", "step"]


async def test_the_chain_of_a_call_is_built_once_for_the_same_model_and_middlewares() -> None:
    bound: list[object] = []

    class Counts(Middleware):
        def bind(self, build: object) -> None:
            bound.append(build)

    member, model = Counts(), ScriptedModel(["ok"] * 3)
    for _ in range(3):
        await generate(model, "Hi", middlewares=[member])
    assert len(bound) == 1
    await generate(ScriptedModel("ok"), "Hi", middlewares=[member])
    assert len(bound) == 2


@pytest.mark.parametrize("argument", ["middlewares", "turn_middlewares"])
async def test_middlewares_are_a_list(argument: str) -> None:
    with pytest.raises(ConfigError, match=f"^{argument} is a list of middlewares, not Journal"):
        await generate(ScriptedModel("ok"), "Hi", **{argument: Journal("x", [])})  # type: ignore[call-overload]


@pytest.mark.parametrize("named", [False, True])
async def test_a_model_that_prepare_step_chooses_has_the_same_around_it(named: bool) -> None:
    notes: list[str] = []
    chosen = ScriptedModel("done")
    members = [Journal("step", notes)]
    model: Any = Pipeline(members, model=two_steps()) if named else two_steps()
    result = await generate(
        model,
        "Hi",
        tools=[weather],
        middlewares=() if named else members,
        prepare_step=lambda info: {"model": chosen} if info.step_number == 1 else None,
    )
    assert (result.text, notes) == ("done", ["step", "step"])


async def test_a_terminal_call_can_be_read() -> None:
    final = Tool(name="final", input_schema={"type": "object"})
    call = GenerateResult((ToolCall("c1", "final", '{"x": 1}'),), FinishReason("tool-calls"))
    result = await generate(ScriptedModel([call]), "Hi", tools=[final], terminal_tools=["final"])
    assert result.terminal_call is not None
    assert result.terminal_call.input == '{"x": 1}'


async def test_a_record_tells_of_a_cancelled_turn() -> None:
    record = TurnRecord()
    started = anyio.Event()

    @tool(name="weather")
    async def waits(city: str) -> None:
        """Wait for ever."""
        started.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: generate(ScriptedModel([CALL]), "Hi", tools=[waits], record=record))
        await started.wait()
        tasks.cancel_scope.cancel()
    assert [one.status for one in record.tool_executions] == ["cancelled"]
    assert len(record.messages) == 3


async def test_a_record_does_not_go_with_what_may_take_something_out_of_it() -> None:
    with pytest.raises(ConfigError, match="record= and turn_middlewares= do not go together"):
        await generate(ScriptedModel("ok"), "Hi", record=TurnRecord(), turn_middlewares=[NoSun()])


async def test_a_call_that_waits_is_approved_or_denied_in_a_word() -> None:
    paid: list[int] = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    calls = tuple(ToolCall(f"c{n}", "pay", f'{{"amount": {n}}}') for n in (1, 2))
    first = await generate(ScriptedModel([GenerateResult(calls, FinishReason("tool-calls"))]), "Hi", tools=[pay])
    one, other = first.approvals
    answers = [other.deny("too much"), one.approve()]
    result = await generate(ScriptedModel("done"), messages=[*first.messages, *answers], tools=[pay])
    assert (paid, result.text) == ([1], "done")
    assert [execution.status for execution in result.tool_executions] == ["ok", "denied"]


async def test_a_model_object_is_used_bare() -> None:
    model = ScriptedModel([RateLimitError("slow"), "ok"])
    with pytest.raises(RateLimitError):
        await generate(model, "Hi")
    assert len(model.calls) == 1


async def test_a_pipeline_stands_for_the_model_that_it_names() -> None:
    pipeline = Pipeline([RegexTransform("sunny", "rainy")], model=two_steps())
    assert (await generate(pipeline, "Hi", tools=[weather])).text == "It is rainy."


async def test_a_model_by_name_has_timeouts_and_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = [
        openai.error(503, "busy", headers={"retry-after": "0"}),
        openai.tool_call("weather", {"city": "Oslo"}),
        openai.text("It is sunny."),
    ]
    with wire.openai_server(replies) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        result = await generate("openai-compatible:gpt-5", "Hi", tools=[weather])
        assert result.text == "It is sunny."
        assert len(server.journal) == 3
        assert not any(exchange.json.get("stream") for exchange in server.journal)


async def test_a_name_of_no_provider_is_refused() -> None:
    with pytest.raises(ConfigError, match="nobody"):
        await generate("nobody:gpt-5", "Hi")


async def test_the_journal_of_a_generated_turn_shows_no_streaming_request() -> None:
    replies = [openai.tool_call("weather", {"city": "Oslo"}), openai.text("It is sunny.")]
    with wire.openai_server(replies) as server:
        async with OpenAICompatibleModel("gpt-5", base_url=server.base_url, api_key="key") as model:
            result = await generate(model, "Hi", tools=[weather], tool_choice="required")
        first, second = (exchange.json for exchange in server.journal)
    assert result.text == "It is sunny."
    assert "stream" not in first
    assert "stream" not in second
    assert (first["tool_choice"], second["tool_choice"]) == ("required", "auto")
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "tool"]


# -- refusals


class NoUmbrellas(RequestPolicy):
    def check(self, request: Any) -> Verdict:
        return deny("no-umbrellas", "Not that.") if "umbrella" in request.text else allow()


class NoSun(ResponsePolicy):
    def check(self, view: View) -> Verdict:
        return deny("no-sun", "Not that.") if "sunny" in view.text else allow()


@pytest.mark.parametrize("where", ["middlewares", "turn_middlewares"])
async def test_a_refused_request_is_an_answer(where: str) -> None:
    result = await generate(ScriptedModel([]), "An umbrella?", **{where: [NoUmbrellas()]})  # type: ignore[call-overload]
    assert (result.text, result.finish_reason.unified) == ("Not that.", "content-filter")
    assert result.messages[-1] == AssistantMessage([TextPart("Not that.")])


async def test_what_is_refused_around_the_turn_is_nowhere_in_the_result() -> None:
    result = await generate(two_steps(), "Hi", tools=[weather], middlewares=[NoSun()], turn_middlewares=[NoSun()])
    assert (result.text, result.finish_reason.unified) == ("Not that.", "content-filter")
    assert "It is sunny" not in str([to_json(one) for one in result.messages])
    assert all(step.text == "" for step in result.steps)
    assert [one.status for one in result.tool_executions] == ["ok"]
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]


async def test_what_is_changed_around_the_turn_is_changed_in_the_conversation() -> None:
    result = await generate(two_steps(), "Hi", tools=[weather], turn_middlewares=[RegexTransform("sunny", "rainy")])
    assert result.text == "It is rainy."
    assert result.messages[-1] == AssistantMessage([TextPart("It is rainy.")])
    assert "It is sunny" not in str([to_json(one) for one in result.messages])


async def test_what_leaves_the_turn_as_it_was_leaves_the_result_as_it_was() -> None:
    notes: list[str] = []
    plain = await generate(two_steps(), "Hi", tools=[weather])
    around = await generate(two_steps(), "Hi", tools=[weather], turn_middlewares=[Journal("turn", notes)])
    assert (around.text, around.steps, around.messages) == (plain.text, plain.steps, plain.messages)


async def test_a_chain_that_raises_refusals_raises_them() -> None:
    model = wrap_model(two_steps(), [NoSun()], denied="raise")
    with pytest.raises(PolicyDenied):
        await generate(model, "Hi", tools=[weather])


class AnswersItself(Middleware):
    may_answer = True

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return GenerateResult((Text("From memory."),))


async def test_a_middleware_may_answer_in_place_of_the_turn() -> None:
    result = await generate(ScriptedModel([]), "Hi", tools=[weather], turn_middlewares=[AnswersItself()])
    assert (result.text, result.steps) == ("From memory.", ())
    assert result.messages == (user("Hi"), AssistantMessage([TextPart("From memory.")]))


class Twice(Middleware):
    """Runs the turn again where it does not like the answer."""

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_generate(options)
        return await model.do_generate(options)


async def test_of_several_runs_the_last_counts() -> None:
    model = ScriptedModel(["first", "second"])
    result = await generate(model, "Hi", turn_middlewares=[Twice()])
    assert (result.text, len(result.steps)) == ("second", 1)


# -- scripts


def test_scripts_need_no_event_loop() -> None:
    assert generate_sync(two_steps(), "Hi", tools=[weather]).text == "It is sunny."


async def test_the_sync_form_is_refused_where_a_loop_runs() -> None:
    with pytest.raises(ConfigError, match=r"await generate"):
        generate_sync(ScriptedModel("ok"), "Hi")


async def test_many_turns_at_once_do_not_mix() -> None:
    results: dict[int, str] = {}

    async def one(number: int) -> None:
        @tool
        async def look() -> str:
            await anyio.lowlevel.checkpoint()
            return f"result {number}"

        def last(options: CallOptions) -> str:
            message = options.prompt[-1]
            assert not isinstance(message, UserMessage)
            return f"{number}: {to_json(message)}"

        model = ScriptedModel([GenerateResult((ToolCall("c1", "look", "{}"),), FinishReason("tool-calls")), last])
        results[number] = (await generate(model, "Hi", tools=[look])).text

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(one, number)
    assert all(text.startswith(f"{number}:") and f"result {number}" in text for number, text in results.items())


async def test_generate_and_stream_take_the_same_arguments() -> None:
    assert list(inspect.signature(generate).parameters) == list(inspect.signature(stream).parameters)
