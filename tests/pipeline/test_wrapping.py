"""What wrapping means, as measured on the AI SDK's `wrapLanguageModel` (V3): order, transforms, cross-calls, names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from neurolink_mw.pipeline import Middleware, WrappedModel, wrap_model
from neurolink_mw.protocol import (
    CallOptions,
    GenerateResult,
    Kind,
    LanguageModel,
    StreamResult,
    collect,
    user,
    user_text,
)
from neurolink_mw.testing import ScriptedModel, check_model

from .builders import ASKED, Layer, Member, Noted, NotedModel, answer, layers, parts, read, run

pytestmark = pytest.mark.anyio


async def test_the_first_member_sees_the_request_first_and_the_answer_last() -> None:
    journal: list[str] = []
    model = wrap_model(NotedModel(journal), [Noted("A", journal), Noted("B", journal)])
    await model.do_generate(ASKED)
    assert journal == [
        *("A.transform(generate)", "A.generate>", "B.transform(generate)", "B.generate>"),
        *("model.generate", "B.generate<", "A.generate<"),
    ]


async def test_a_stream_is_wrapped_in_the_same_order() -> None:
    journal: list[str] = []
    model = wrap_model(NotedModel(journal), [Noted("A", journal), Noted("B", journal)])
    await read(model)
    assert journal == [
        *("A.transform(stream)", "A.stream>", "B.transform(stream)", "B.stream>"),
        *("model.stream", "B.stream<", "A.stream<"),
    ]


class Says(Middleware):
    """Puts its word at the end of the prompt, and notes the prompt that its wrap sees."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.id = word  # type: ignore[misc]
        self.seen: list[str] = []

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return options.replace(prompt=[*options.prompt, user(self.id)])

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        self.seen.append(said(options))
        return await model.do_generate(options)


def said(options: CallOptions) -> str:
    return " ".join(user_text([message]) for message in options.prompt)


async def test_a_transform_runs_inside_the_wrap_further_out_and_not_before_it() -> None:
    outer, inner = Says("outer"), Says("inner")
    model = NotedModel([])
    await wrap_model(model, [outer, inner]).do_generate(ASKED)
    assert outer.seen == ["Hello outer"]
    assert inner.seen == ["Hello outer inner"]
    assert said(model.seen[0]) == "Hello outer inner"


class Twice(Middleware):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_generate(options)
        return await model.do_generate(options)

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        self.transforms = getattr(self, "transforms", 0) + 1
        return options


async def test_a_layer_that_calls_twice_transforms_once_and_the_layers_in_it_twice() -> None:
    journal: list[str] = []
    twice = Twice()
    await wrap_model(NotedModel(journal), [twice, Noted("B", journal)]).do_generate(ASKED)
    assert twice.transforms == 1
    assert journal == ["B.transform(generate)", "B.generate>", "model.generate", "B.generate<"] * 2


async def test_a_layer_may_pass_other_options_on() -> None:
    async def colder(model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await model.do_generate(options.replace(temperature=0))

    inside = NotedModel([])
    await wrap_model(inside, [Member("colder", wrap_generate=colder)]).do_generate(ASKED.replace(temperature=1))
    assert inside.seen[0].temperature == 0


async def test_what_the_caller_gave_is_never_changed() -> None:
    given = ASKED.replace(temperature=0.5)
    await wrap_model(NotedModel([]), [Says("more")]).do_generate(given)
    assert given == ASKED.replace(temperature=0.5)


async def test_a_stream_hook_that_generates_makes_everything_further_in_generate() -> None:
    async def simulate(model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(await model.do_generate(options))

    async def note(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        journal.append(f"A.transform({kind})")
        return options

    journal: list[str] = []
    crossing = Member("A", wrap_stream=simulate, transform_params=note)
    await read(wrap_model(NotedModel(journal), [crossing, Noted("B", journal)]))
    assert journal == [
        *("A.transform(stream)", "B.transform(generate)", "B.generate>", "model.generate", "B.generate<")
    ]


async def test_a_generate_hook_that_streams_makes_everything_further_in_stream() -> None:
    async def add_up(model: LanguageModel, options: CallOptions) -> GenerateResult:
        return collect(await read(model, options))

    journal: list[str] = []
    model = wrap_model(NotedModel(journal), [Member("A", wrap_generate=add_up), Noted("B", journal)])
    assert (await model.do_generate(ASKED)).text == "Hi"
    assert journal == ["B.transform(stream)", "B.stream>", "model.stream", "B.stream<"]


@pytest.mark.parametrize("kind", ["generate", "stream"])
async def test_nothing_runs_further_in_than_a_member_that_answers_itself(kind: Kind) -> None:
    async def generate(model: LanguageModel, options: CallOptions) -> GenerateResult:
        return answer("mine")

    async def stream(model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(answer("mine"))

    journal: list[str] = []
    short = Member("short", wrap_generate=generate, wrap_stream=stream)
    await run(wrap_model(NotedModel(journal), [short, Noted("B", journal)]), kind)
    assert journal == []


class Broken(Exception):
    pass


@pytest.mark.parametrize("kind", ["generate", "stream"])
async def test_an_error_of_the_model_can_be_caught_by_a_wrap(kind: Kind) -> None:
    async def rescue(model: LanguageModel, options: CallOptions) -> GenerateResult:
        with pytest.raises(Broken):
            await model.do_generate(options)
        return answer("rescued")

    async def rescue_stream(model: LanguageModel, options: CallOptions) -> StreamResult:
        with pytest.raises(Broken):
            await model.do_stream(options)
        return StreamResult.of(answer("rescued"))

    saver = Member("saver", wrap_generate=rescue, wrap_stream=rescue_stream)
    await run(wrap_model(ScriptedModel([Broken()]), [saver]), kind)


async def test_a_transform_further_in_that_raises_can_be_caught_and_ones_own_cannot() -> None:
    async def fail(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        raise Broken

    async def catch(model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            return await model.do_generate(options)
        except Broken:
            return answer("caught")

    catching, failing = Member("catching", wrap_generate=catch), Member("failing", transform_params=fail)
    both = Member("both", wrap_generate=catch, transform_params=fail)
    assert (await wrap_model(NotedModel([]), [catching, failing]).do_generate(ASKED)).text == "caught"
    with pytest.raises(Broken):
        await wrap_model(NotedModel([]), [both]).do_generate(ASKED)


async def test_errors_come_through_many_layers_as_they_are() -> None:
    error = Broken()
    with pytest.raises(Broken) as caught:
        await wrap_model(ScriptedModel([error]), layers(10)).do_generate(ASKED)
    assert caught.value is error


async def test_the_parts_of_a_stream_are_the_same_objects_outside() -> None:
    script = parts("a", "b")
    seen = await read(wrap_model(ScriptedModel([script]), [Noted("A", []), Noted("B", [])]))
    assert len(seen) == len(script)
    assert all(one is other for one, other in zip(seen, script, strict=True))


async def test_a_stream_is_handed_through_unread_and_unwrapped_where_nobody_looks_at_it() -> None:
    result = StreamResult.of(answer())

    class Holding(NotedModel):
        async def do_stream(self, options: CallOptions) -> StreamResult:
            return result

    assert await wrap_model(Holding([]), [Noted("A", []), Noted("B", [])]).do_stream(ASKED) is result
    await result.stream.aclose()


async def test_a_layer_without_a_hook_is_not_there_at_all() -> None:
    model = NotedModel([])
    wrapped = wrap_model(model, [Member("idle")])
    assert wrapped.do_generate == model.do_generate
    assert wrapped.do_stream == model.do_stream


async def test_an_empty_list_is_the_model_itself() -> None:
    model = NotedModel([])
    assert wrap_model(model, []) is model


async def test_the_list_of_members_is_left_as_it_was() -> None:
    inner, outer = Layer("inner"), Layer("outer")
    inner.stage, outer.stage = 1, 2  # type: ignore[misc]
    members: list[Middleware] = [inner, outer]
    wrap_model(NotedModel([]), members)
    assert members == [inner, outer]


async def test_a_wrapped_model_can_be_wrapped_again() -> None:
    journal: list[str] = []
    once = wrap_model(NotedModel(journal), [Noted("B", journal)])
    await wrap_model(once, [Noted("A", journal)]).do_generate(ASKED)
    assert journal == [
        *("A.transform(generate)", "A.generate>", "B.transform(generate)", "B.generate>"),
        *("model.generate", "B.generate<", "A.generate<"),
    ]


async def test_one_member_may_stand_around_two_models() -> None:
    journal: list[str] = []
    shared = Noted("A", journal)
    one, other = wrap_model(NotedModel(journal), [shared]), wrap_model(NotedModel(journal), [shared])
    await one.do_generate(ASKED)
    await other.do_generate(ASKED)
    assert journal == ["A.transform(generate)", "A.generate>", "model.generate", "A.generate<"] * 2


@pytest.mark.parametrize("depth", [1, 10])
async def test_a_wrapped_model_keeps_the_promises_of_a_model(depth: int) -> None:
    await check_model(wrap_model(ScriptedModel("Hello", repeat=True), layers(depth)))


# -- names


class Renamed(Middleware):
    """Puts a letter in front of every name, and notes what it was shown."""

    def __init__(self, letter: str) -> None:
        super().__init__()
        self.id = letter  # type: ignore[misc]
        self.shown: list[str] = []

    def override_provider(self, model: LanguageModel) -> str:
        self.shown.append(model.provider)
        return f"{self.id}({model.provider})"

    def override_model_id(self, model: LanguageModel) -> str:
        self.shown.append(model.model_id)
        return f"{self.id}({model.model_id})"

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        self.shown.append(f"{model.provider} {model.model_id}")
        return await model.do_generate(options)


def names(model: LanguageModel) -> tuple[str, str]:
    return model.provider, model.model_id


async def test_names_are_the_models_where_nobody_says_otherwise() -> None:
    assert names(wrap_model(NotedModel([]), layers(2))) == ("noted", "noted-1")


async def test_overrides_nest_and_each_is_asked_about_the_model_one_further_in() -> None:
    a, b = Renamed("A"), Renamed("B")
    assert names(wrap_model(NotedModel([]), [a, b])) == ("A(B(noted))", "A(B(noted-1))")
    assert a.shown == ["B(noted)", "B(noted-1)"]
    assert b.shown == ["noted", "noted-1"]


async def test_explicit_names_win_over_overrides_and_show_on_every_layer() -> None:
    a, b = Renamed("A"), Renamed("B")
    model = wrap_model(NotedModel([]), [a, b], provider="p", model_id="m")
    await model.do_generate(ASKED)
    assert names(model) == ("p", "m")
    assert a.shown == b.shown == ["p m"]


async def test_one_explicit_name_leaves_the_other_to_the_overrides() -> None:
    assert names(wrap_model(NotedModel([]), [Renamed("A")], provider="p")) == ("p", "A(noted-1)")


async def test_an_explicit_name_alone_is_a_wrapped_model() -> None:
    model = wrap_model(NotedModel([]), [], model_id="m")
    assert names(model) == ("noted", "m")
    assert (await model.do_generate(ASKED)).text == "Hi"


class CountedUrls(NotedModel):
    asked = 0

    @property
    def supported_urls(self) -> Mapping[str, Sequence[str]]:
        CountedUrls.asked += 1
        return {"image/*": [rf"^https://{self.provider}\.example/"]}


async def test_supported_urls_of_a_model_are_read_once_at_wrap_time() -> None:
    CountedUrls.asked = 0
    wrapped = wrap_model(CountedUrls([]), layers(3))
    read_once = [getattr(wrapped, "supported_urls", None) for _ in range(3)]
    assert read_once == [{"image/*": [r"^https://noted\.example/"]}] * 3
    assert CountedUrls.asked == 1


class OwnUrls(Middleware):
    asked = 0

    def override_supported_urls(self, model: LanguageModel) -> Mapping[str, Sequence[str]]:
        self.asked += 1
        return {"*": [".*"]}


async def test_an_override_of_the_supported_urls_is_asked_once_even_when_wrapped_again() -> None:
    own = OwnUrls()
    inner = wrap_model(NotedModel([]), [own])
    outer = wrap_model(inner, [needing_a_scope()])
    await outer.do_generate(ASKED)
    assert getattr(outer, "supported_urls", None) == {"*": [".*"]}
    assert own.asked == 1


def needing_a_scope() -> Middleware:
    member = Layer("scoped")
    member.needs_scope = True  # type: ignore[misc]
    return member


async def test_a_wrapped_model_names_its_members_in_its_repr() -> None:
    model = wrap_model(NotedModel([]), layers(2))
    assert isinstance(model, WrappedModel)
    assert repr(model) == "WrappedModel(noted:noted-1, [layer-0, layer-1])"


async def test_a_transform_sees_the_next_model_in() -> None:
    seen: list[tuple[str, str]] = []

    async def note(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        seen.append(names(model))
        return options

    await wrap_model(NotedModel([]), [Member("looker", transform_params=note), Renamed("B")]).do_generate(ASKED)
    assert seen == [("B(noted)", "B(noted-1)")]
