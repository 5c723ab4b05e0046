"""The contract of a middleware: what a class may look like, and what is refused before it can do harm."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ClassVar, Literal

import anyio
import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from neurolink_mw.errors import ConfigError
from neurolink_mw.pipeline import Member as AnyMember
from neurolink_mw.pipeline import Middleware, MiddlewareConfig, Stage, Use, wrap_model
from neurolink_mw.protocol import (
    CallOptions,
    GenerateResult,
    Kind,
    LanguageModel,
    StreamResult,
    ToolCall,
    ToolOutcome,
    ToolRunner,
)
from neurolink_mw.testing import ScriptedModel

from .builders import ASKED, Layer, Member, answer, read

pytestmark = pytest.mark.anyio

SECRET = "sk-very-secret-1234"


def refuse_class(**namespace: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        type("Guard", (Middleware,), namespace)
    return str(caught.value)


async def nothing(*args: object) -> None:
    pass


# -- the class


def test_what_is_neither_a_middleware_nor_a_role_cannot_stand_in_a_chain() -> None:
    class Lost(AnyMember):
        pass

    with pytest.raises(ConfigError, match=r"^Lost is neither a Middleware nor a role: derive it from one of them$"):
        wrap_model(ScriptedModel("Hi"), [Lost()])


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("wrap_genrate", "wrap_generate"),
        ("wrap_streams", "wrap_stream"),
        ("transform_param", "transform_params"),
        ("override_modelid", "override_model_id"),
        ("wrapGenerate", "wrap_generate"),
    ],
)
def test_a_misspelt_hook_is_refused_when_the_class_is_made(misspelt: str, meant: str) -> None:
    assert refuse_class(**{misspelt: nothing}) == f"Guard.{misspelt} is no hook; did you mean {meant!r}?" + listed()


def listed() -> str:
    return (
        " (allowed: transform_params, wrap_generate, wrap_stream, wrap_tool, wrap_decide, "
        "override_provider, override_model_id, override_supported_urls)"
    )


def test_a_misspelt_hook_of_a_mixin_is_refused_too() -> None:
    mixin = type("Mixin", (), {"wrap_steam": nothing})
    with pytest.raises(ConfigError, match="did you mean 'wrap_stream'"):
        type("Guard", (mixin, Middleware), {})


def test_an_attribute_that_only_begins_like_a_hook_is_none() -> None:
    type("Wide", (Middleware,), {"wrap_width": 80, "transform_table": {}})


def test_the_id_is_the_class_name_in_snake_case_unless_it_is_set() -> None:
    class HTTPCacheV2(Middleware):
        pass

    class _Private(Middleware):
        pass

    class Named(Middleware):
        id = "mine"

    assert [cls.id for cls in (HTTPCacheV2, _Private, Named)] == ["http_cache_v2", "private", "mine"]


def test_a_subclass_has_an_id_of_its_own() -> None:
    class Caching(Middleware):
        id = "caching"

    class Sharing(Caching):
        pass

    assert Sharing.id == "sharing"


def test_a_config_that_takes_unknown_options_is_refused() -> None:
    class Loose(BaseModel):
        limit: int = 1

    assert "Guard.Config must refuse unknown options" in refuse_class(Config=Loose)


def test_a_config_of_ones_own_base_is_fine_if_it_refuses_unknown_options() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")

    type("Guard", (Middleware,), {"Config": Strict})


def test_a_config_that_is_no_pydantic_model_is_refused() -> None:
    assert "Guard.Config is a pydantic model" in refuse_class(Config=dict)


@pytest.mark.parametrize("name", ["before", "after"])
def test_one_string_is_no_list_of_ids_and_would_be_read_letter_by_letter(name: str) -> None:
    assert refuse_class(**{name: "caching"}) == f"Guard.{name} is a list of ids, not one string"


@pytest.mark.parametrize("stage", ["GUARD", None, True, 1.5])
def test_a_stage_is_a_whole_number(stage: object) -> None:
    assert "Guard.stage is a Stage or a whole number" in refuse_class(stage=stage)


# -- the config


class LimitConfig(MiddlewareConfig):
    limit: int = Field(default=3, ge=1)
    mode: Literal["fast", "slow"] = "fast"
    key: SecretStr | None = None
    tags: dict[str, int] = Field(default_factory=dict)

    @field_validator("key")
    @classmethod
    def long_enough(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and key.get_secret_value().startswith("sk-"):
            raise ValueError(f"{key.get_secret_value()} is not a key")
        return key


class Limit(Middleware):
    Config = LimitConfig
    config: LimitConfig


def refuse_config(**values: object) -> str:
    with pytest.raises(ConfigError) as caught:
        Limit(**values)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_middleware_is_made_from_the_values_of_its_config() -> None:
    assert Limit(limit=5).config == LimitConfig(limit=5)


def test_a_middleware_is_made_from_a_config() -> None:
    config = LimitConfig(mode="slow")
    assert Limit(config).config is config


def test_a_middleware_without_values_has_the_defaults() -> None:
    assert Limit().config.limit == 3


def test_a_config_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Limit().config.limit = 4  # type: ignore[misc]


def test_both_a_config_and_values_are_refused() -> None:
    with pytest.raises(ConfigError, match="Limit takes one LimitConfig, or its values by name"):
        Limit(LimitConfig(), limit=4)


def test_a_config_of_another_middleware_is_refused() -> None:
    with pytest.raises(ConfigError, match="Limit takes one LimitConfig"):
        Limit(MiddlewareConfig())


def test_an_unknown_option_is_named_with_the_likely_one_and_never_its_value() -> None:
    message = refuse_config(limt=SECRET)
    assert message == "Limit.limt: there is no such option; did you mean 'limit'? (allowed: key, limit, mode, tags)"


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"limit": SECRET}, "Limit.limit: "),
        ({"limit": 0}, "Limit.limit: input should be greater than or equal to 1"),
        ({"mode": SECRET}, "Limit.mode: input should be 'fast' or 'slow'"),
        ({"tags": {"a": SECRET}}, "Limit.tags.a: "),
        ({"tags": SECRET}, "Limit.tags: "),
        ({"key": 5}, "Limit.key: "),
    ],
)
def test_an_invalid_option_is_named_and_its_value_is_not(values: dict[str, object], place: str) -> None:
    message = refuse_config(**values)
    assert message.startswith(place)
    assert SECRET not in message


def test_a_validator_that_quotes_the_value_does_not_get_it_through() -> None:
    assert refuse_config(key=SECRET) == "Limit.key: value error, ... is not a key"


def test_all_faults_are_said_at_once() -> None:
    message = refuse_config(limit=0, mode="x", more=1)
    assert all(place in message for place in ("Limit.limit: ", "Limit.mode: ", "Limit.more: "))


def test_the_error_does_not_drag_the_values_along() -> None:
    with pytest.raises(ConfigError) as caught:
        Limit(limit=SECRET)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


# -- members


class Model(ScriptedModel):
    def __init__(self) -> None:
        super().__init__("Hi", repeat=True)


def refuse_members(*members: object) -> str:
    with pytest.raises(ConfigError) as caught:
        wrap_model(Model(), list(members))  # type: ignore[arg-type]
    return str(caught.value)


def test_a_class_in_place_of_an_instance_is_refused() -> None:
    assert refuse_members(Layer) == "Layer is a class: give an instance, Layer()"


@pytest.mark.parametrize("member", [None, "caching", ScriptedModel("x"), lambda: None])
def test_what_is_no_middleware_is_refused(member: object) -> None:
    assert refuse_members(member).startswith("a member of a chain is a Middleware, a role, or Use(...) of one, not ")


def test_what_is_no_middleware_is_refused_in_a_place_as_well() -> None:
    with pytest.raises(ConfigError, match="not str"):
        Use("caching")  # type: ignore[arg-type]


def test_one_member_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"members are given as a list: \[member\]"):
        wrap_model(Model(), Layer())  # type: ignore[arg-type]


@pytest.mark.parametrize("id", ["", None, 3])
def test_an_id_is_a_text(id: object) -> None:
    member = Layer()
    member.id = id  # type: ignore[misc,assignment]
    assert "Layer.id is a non-empty text" in refuse_members(member)


def test_no_member_can_be_called_as_outcomes_call_the_model() -> None:
    assert "cannot have the id 'model'" in refuse_members(Layer("model"))


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ({"before": "caching"}, "before=...) takes a list of ids, not one string"),
        ({"after": [Layer()]}, "after=...) takes a list of ids, not objects"),
        ({"priority": "high"}, "priority=...) takes a whole number, not str"),
        ({"priority": True}, "priority=...) takes a whole number, not bool"),
    ],
)
def test_the_rules_of_a_place_are_checked(rules: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Use(Layer(), **rules)
    assert fault in str(caught.value)


@pytest.mark.parametrize("model", [None, "gpt", object(), Layer()])
def test_what_is_no_model_is_refused_with_what_it_lacks(model: object) -> None:
    with pytest.raises(ConfigError, match="is no language model: it has no "):
        wrap_model(model, [Layer()])  # type: ignore[arg-type]


def test_the_class_of_a_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="ScriptedModel is a class: give an instance of it"):
        wrap_model(ScriptedModel, [Layer()])  # type: ignore[arg-type]


def test_a_model_is_checked_even_if_nobody_is_put_around_it() -> None:
    with pytest.raises(ConfigError, match="is no language model"):
        wrap_model("gpt", [])  # type: ignore[arg-type]


# -- hooks of any make


async def ask(member: Middleware) -> str:
    return (await wrap_model(Model(), [member]).do_generate(ASKED)).text


async def add_mark(model: LanguageModel, options: CallOptions) -> GenerateResult:
    return answer((await model.do_generate(options)).text + "!")


class Marking:
    async def __call__(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await add_mark(model, options)


def returns_awaitable(model: LanguageModel, options: CallOptions) -> Awaitable[GenerateResult]:
    return add_mark(model, options)


@functools.wraps(add_mark)
def decorated(*args: Any, **kwargs: Any) -> Any:
    return add_mark(*args, **kwargs)


def with_a_mark(mark: str, model: LanguageModel, options: CallOptions) -> Awaitable[GenerateResult]:
    return add_mark(model, options)


@pytest.mark.parametrize(
    "hook", [add_mark, Marking(), returns_awaitable, decorated, functools.partial(with_a_mark, "!")]
)
async def test_a_wrap_is_any_callable_that_can_be_awaited(hook: Callable[..., object]) -> None:
    assert await ask(Member(wrap_generate=hook)) == "Hi!"


async def test_a_wrap_may_be_a_sync_function_that_answers() -> None:
    assert await ask(Member(wrap_generate=lambda model, options: answer("mine"))) == "mine"


async def test_a_transform_may_be_a_sync_method() -> None:
    class Cold(Middleware):
        def transform_params(  # type: ignore[override]
            self, options: CallOptions, kind: Kind, model: LanguageModel
        ) -> CallOptions:
            return options.replace(temperature=0)

    model = Model()
    await wrap_model(model, [Cold()]).do_generate(ASKED)
    assert model.calls[0].options.temperature == 0


async def test_a_wrap_may_be_a_static_method() -> None:
    class Static(Middleware):
        wrap_generate = staticmethod(add_mark)

    assert await ask(Static()) == "Hi!"


async def test_a_hook_set_on_the_instance_counts_for_that_instance_alone() -> None:
    class Plain(Middleware):
        pass

    plain, changed = Plain(), Plain()
    changed.wrap_generate = add_mark  # type: ignore[method-assign]
    assert await ask(plain) == "Hi"
    assert await ask(changed) == "Hi!"


async def test_an_inherited_hook_runs() -> None:
    class Base(Middleware):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            return await add_mark(model, options)

    class Derived(Base):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            return answer((await super().wrap_generate(model, options)).text + "?")

    assert await ask(Derived()) == "Hi!?"


def test_a_hook_that_cannot_be_called_is_refused() -> None:
    assert refuse_members(Member("odd", wrap_generate="text")) == "odd.wrap_generate is not callable: str"


def test_a_hook_with_a_yield_in_it_is_refused_with_what_to_do() -> None:
    async def changing(model: LanguageModel, options: CallOptions) -> AsyncIterator[object]:
        async for part in (await model.do_stream(options)).stream:
            yield part

    message = refuse_members(Member("odd", wrap_stream=changing))
    assert message.startswith("odd.wrap_stream has a `yield` in it")
    assert ".through(your_generator)" in message


def test_an_async_bind_is_refused() -> None:
    assert "member.bind is not awaited" in refuse_members(Member(bind=nothing))


def test_what_a_bind_raises_stops_the_build() -> None:
    def fail(build: object) -> None:
        raise ConfigError("no such store")

    assert refuse_members(Member(bind=fail)) == "no such store"


# -- what hooks return


@pytest.mark.parametrize("returned", [None, "options", ASKED.prompt])
@pytest.mark.parametrize("scoped", [True, False])
async def test_a_transform_that_returns_something_else_is_refused_by_name(returned: object, scoped: bool) -> None:
    async def forget(options: CallOptions, kind: Kind, model: LanguageModel) -> object:
        return returned

    member = Member("forgetful", transform_params=forget)
    member.needs_scope = scoped  # type: ignore[misc]
    model = Model()
    with pytest.raises(ConfigError, match=r"forgetful\.transform_params returns the options to go on with, not "):
        await wrap_model(model, [member]).do_generate(ASKED)
    assert model.calls == []


async def test_a_wrap_that_forgets_to_return_is_found_at_the_boundary() -> None:
    member = Member("forgetful", wrap_generate=nothing, wrap_stream=nothing)
    member.needs_scope = True  # type: ignore[misc]
    model = wrap_model(Model(), [member])
    with pytest.raises(ConfigError, match=r"do_generate .* NoneType, not a GenerateResult; is there a `return`"):
        await model.do_generate(ASKED)
    with pytest.raises(ConfigError, match=r"do_stream .* returned NoneType, not a StreamResult"):
        await model.do_stream(ASKED)


async def test_a_stream_hook_that_returns_an_answer_is_found_at_the_boundary() -> None:
    async def generate(model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await model.do_generate(options)

    member = Member("odd", wrap_stream=generate)
    member.needs_scope = True  # type: ignore[misc]
    with pytest.raises(ConfigError, match=r"do_stream .* returned GenerateResult, not a StreamResult"):
        await wrap_model(Model(), [member]).do_stream(ASKED)


# -- defaults


class Bare(Middleware):
    marks: ClassVar[list[str]] = []


async def test_a_middleware_without_hooks_passes_everything_on() -> None:
    bare, model = Bare(), Model()
    assert await bare.transform_params(ASKED, "generate", model) is ASKED
    assert (await bare.wrap_generate(model, ASKED)).text == "Hi"
    result = await bare.wrap_stream(model, ASKED)
    assert isinstance(result, StreamResult)
    await result.stream.aclose()
    assert (bare.override_provider(model), bare.override_model_id(model)) == ("scripted", "scripted-1")
    assert bare.override_supported_urls(model) == {}
    assert (bare.stage, bare.may_answer, bare.reads, bare.writes) == (Stage.NORMALIZE, False, frozenset(), frozenset())
    await bare.aclose()


async def test_a_middleware_shows_its_class_and_id_and_no_option() -> None:
    assert repr(Limit(limit=5)) == "Limit(id='limit')"
    assert SECRET not in repr(LimitConfig.model_construct(key=SecretStr(SECRET), tags={SECRET: 1}))


async def test_a_stream_goes_through_a_middleware_without_hooks() -> None:
    assert len(await read(wrap_model(Model(), [Bare()]))) == 5


def test_a_wrap_that_forgets_its_return_is_refused_when_the_class_is_defined() -> None:
    with pytest.raises(ConfigError, match=r"Silent.wrap_generate never returns anything: is there a `return` missing"):

        class Silent(Middleware):
            async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:  # type: ignore[return]
                await model.do_generate(options)


def test_a_hook_that_always_raises_is_no_forgotten_return() -> None:
    class Refusing(Middleware):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            raise LookupError

        async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
            if options.tools:
                raise LookupError
            return await model.do_stream(options)

        async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:  # type: ignore[return]
            async with anyio.create_task_group():  # which might swallow it, for all its code shows
                raise LookupError

    assert Refusing().id == "refusing"


def test_a_hook_that_returns_something_on_one_way_only_is_no_forgotten_return() -> None:
    class Choosing(Middleware):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            return await model.do_generate(options) if options.tools else None  # type: ignore[return-value]

    assert Choosing().id == "choosing"


def test_a_hook_with_the_wrong_arguments_is_refused_when_the_class_is_defined() -> None:
    with pytest.raises(ConfigError, match=r"Short.wrap_stream is called as wrap_stream\(model, options\)"):

        class Short(Middleware):
            async def wrap_stream(self, options: CallOptions) -> StreamResult:  # type: ignore[override]
                raise LookupError
