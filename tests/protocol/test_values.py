"""Values: immutable, compared by what they say, cheap to copy, and silent about content."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import typing
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.protocol import (
    DETACHED,
    CallContext,
    CallOptions,
    CallWarning,
    DecideOptions,
    DecideResult,
    ErrorPart,
    FilePart,
    Finish,
    FinishReason,
    FunctionTool,
    GenerateResult,
    JsonOutput,
    ProviderTool,
    RequestInfo,
    StreamStart,
    SystemMessage,
    Text,
    TextDelta,
    TextPart,
    ToolCall,
    ToolResult,
    UnknownPart,
    Url,
    Usage,
    UserMessage,
    Value,
    user,
    with_context,
)
from neurolink_mw.protocol.values import FrozenDict, copier, frozen_json, value

from .strategies import TYPES, few, options_, quick, values_of

each_type = pytest.mark.parametrize("cls", TYPES, ids=lambda cls: cls.__name__)


def field_names(cls: type[Value]) -> list[str]:
    return [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]  # @value makes dataclasses


# ------------------------------------------------------------------------------------------------------ immutability


@each_type
@few
@given(data=st.data())
def test_no_field_of_a_value_can_be_changed_or_removed(cls: type[Value], data: st.DataObject) -> None:
    one = data.draw(values_of(cls))
    for name in field_names(cls):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, name, None)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(one, name)


def test_a_value_takes_no_attribute_of_its_own() -> None:
    with pytest.raises((AttributeError, TypeError)):
        Text("hi").note = "mine"  # type: ignore[attr-defined]
    assert not hasattr(Text("hi"), "__dict__")


def test_a_copy_made_by_replace_is_frozen_too() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Text("a").replace(text="b").text = "c"  # type: ignore[misc]


def test_a_copy_made_with_another_context_is_frozen_too() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        with_context(CallOptions.from_text("hi"), CallContext()).seed = 1  # type: ignore[misc]


# ------------------------------------------------------------------------------------------------ equality and hashes


def test_values_that_say_the_same_are_equal_and_hash_alike() -> None:
    one, other = (Finish(FinishReason("stop", "end_turn"), Usage()) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)


def test_values_of_different_types_are_never_equal() -> None:
    text: object = Text("a")
    assert text != TextPart("a")
    assert text != ("a", None, None)


def test_a_value_that_holds_a_mapping_is_equal_to_its_like_and_has_no_hash() -> None:
    one, other = (Text("a", {"p": {"k": 1}}) for _ in range(2))
    assert one == other
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_options_with_metadata_have_a_hash() -> None:
    one, other = (CallOptions((user("hi"),), metadata={"tags": ["a", {"b": 1}]}) for _ in range(2))
    assert hash(one) == hash(other)


def test_the_context_takes_no_part_in_equality() -> None:
    options = CallOptions.from_text("hi")
    assert with_context(options, CallContext(request_id="r")) == options


# ------------------------------------------------------------------------------------------------------------ copies


def test_replace_changes_the_named_fields_and_keeps_the_others() -> None:
    call = ToolCall("c1", "search", "{}", provider_metadata={"p": {}})
    assert call.replace(input="[]", dynamic=True) == ToolCall("c1", "search", "[]", None, True, {"p": {}})
    assert call == ToolCall("c1", "search", "{}", provider_metadata={"p": {}})


def test_replace_without_changes_is_an_equal_value() -> None:
    assert Text("a").replace() == Text("a")


def test_replace_can_unset_a_field() -> None:
    assert Text("a", {"p": {}}).replace(provider_metadata=None) == Text("a")


def test_replace_refuses_an_unknown_field_by_name() -> None:
    with pytest.raises(TypeError, match="temprature"):
        CallOptions.from_text("hi").replace(temprature=1)


def test_replace_settles_lists_and_metadata_as_the_constructor_does() -> None:
    options = CallOptions.from_text("hi").replace(prompt=[user("you")], stop_sequences=["."], metadata={"tags": ["a"]})
    assert options == CallOptions((user("you"),), stop_sequences=(".",), metadata={"tags": ("a",)})
    assert isinstance(options.prompt, tuple)


def test_replace_refuses_what_the_constructor_refuses() -> None:
    with pytest.raises(TypeError, match=r"CallOptions\.prompt is a list, not str"):
        CallOptions.from_text("hi").replace(prompt="you")


def test_the_base_class_alone_is_no_value() -> None:
    with pytest.raises(TypeError, match="decorate it with @value"):
        Value().replace()


def test_a_copier_changes_its_one_field() -> None:
    with_text = copier(Text, "text")
    assert with_text(Text("a", {"p": {}}), "b") == Text("b", {"p": {}})


def test_with_context_keeps_everything_else() -> None:
    options = CallOptions.from_text("hi").replace(seed=0, metadata={"tenant": "t"})
    context = CallContext()
    moved = with_context(options, context)
    assert moved.context is context
    assert moved.metadata is options.metadata
    assert moved == options


@each_type
@few
@given(data=st.data())
def test_a_value_survives_pickling_and_copying(cls: type[Value], data: st.DataObject) -> None:
    one = data.draw(values_of(cls))
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.copy(one) == one
    assert copy.deepcopy(one) == one


def test_pickled_options_leave_their_context_behind() -> None:
    options = with_context(CallOptions.from_text("hi"), CallContext(request_id="r"))
    assert pickle.loads(pickle.dumps(options)).context is DETACHED


def test_copied_options_belong_to_the_same_call() -> None:
    options = with_context(CallOptions.from_text("hi"), CallContext(request_id="r"))
    assert copy.deepcopy(options).context is options.context


def test_detached_options_stay_detached_when_they_are_copied() -> None:
    options = CallOptions.from_text("hi")
    assert copy.deepcopy(options).context is pickle.loads(pickle.dumps(options)).context is DETACHED


# ------------------------------------------------------------------------------------------- construction and matching


@each_type
@few
@given(data=st.data())
def test_fields_may_be_given_by_position_in_their_declared_order(cls: type[Value], data: st.DataObject) -> None:
    one = data.draw(values_of(cls))
    assert cls(*(getattr(one, name) for name in field_names(cls))) == one


def test_a_missing_field_is_a_type_error_that_names_it() -> None:
    with pytest.raises(TypeError, match="tool_name"):
        ToolCall("c1")  # type: ignore[call-arg]


def test_values_can_be_taken_apart_by_a_match_statement() -> None:
    match TextDelta("0", "hi"):
        case TextDelta(id, delta):
            assert (id, delta) == ("0", "hi")
        case _:
            pytest.fail("no match")


def test_lists_become_tuples_wherever_a_field_is_a_sequence() -> None:
    warning = CallWarning("other", message="m")
    assert GenerateResult([Text("a")], warnings=[warning]) == GenerateResult((Text("a"),), warnings=(warning,))
    assert StreamStart([warning]) == StreamStart((warning,))
    assert UserMessage([TextPart("a")]) == user("a")
    assert DecideOptions([TextPart("a")], {}) == DecideOptions((TextPart("a"),), {})
    assert DecideResult({}, warnings=[warning]) == DecideResult({}, warnings=(warning,))
    assert hash(StreamStart([warning])) == hash(StreamStart((warning,)))


def test_a_sequence_may_come_from_a_generator() -> None:
    assert UserMessage(TextPart(text) for text in "ab") == UserMessage((TextPart("a"), TextPart("b")))  # type: ignore[arg-type]


@pytest.mark.parametrize("content", ["hi", b"hi", TextPart("hi"), {"type": "text"}, None, 3])
def test_the_content_of_a_message_is_refused_where_it_is_no_list(content: object) -> None:
    with pytest.raises(TypeError, match=r"UserMessage\.content is a list.* wrap a text as \[TextPart\(text\)\]"):
        UserMessage(content)  # type: ignore[arg-type]


def test_a_prompt_of_one_text_is_refused_with_the_remedy() -> None:
    with pytest.raises(TypeError, match=r"use CallOptions\.from_text"):
        CallOptions("hi")  # type: ignore[arg-type]


def test_a_content_of_one_text_is_refused() -> None:
    with pytest.raises(TypeError, match=r"GenerateResult\.content is a list, not str"):
        GenerateResult("hi")  # type: ignore[arg-type]


def test_the_default_arguments_of_a_provider_tool_cannot_be_changed_for_all() -> None:
    with pytest.raises(TypeError, match="read-only"):
        ProviderTool("a.b", "b").args["x"] = 1  # type: ignore[index]


def test_new_types_are_declared_with_the_decorator() -> None:
    @value
    class Point(Value):
        x: int
        y: int = 0

    assert Point(1).replace(y=2) == Point(1, 2)
    assert repr(Point(1)) == "Point(x=1, y=0)"


# ------------------------------------------------------------------------------------------------------ not set


@pytest.mark.parametrize(
    ("field", "empty"), [("max_output_tokens", 0), ("reasoning", ""), ("tools", ()), ("headers", {})]
)
def test_zero_and_empty_are_not_the_same_as_unset(field: str, empty: object) -> None:
    options = CallOptions.from_text("hi")
    given_ = options.replace(**{field: empty})
    assert getattr(given_, field) == empty
    assert getattr(given_, field) is not None
    assert given_ != options


def test_zero_empty_text_empty_list_and_none_are_four_things() -> None:
    assert len({JsonOutput(0), JsonOutput(""), JsonOutput(()), JsonOutput(None)}) == 4


# ---------------------------------------------------------------------------------------------------------- metadata


def test_metadata_does_not_change_with_the_callers_dict() -> None:
    tags = ["a"]
    metadata: dict[str, typing.Any] = {"tenant": "t", "nested": {"tags": tags}}
    options = CallOptions((user("hi"),), metadata=metadata)
    tags.append("b")
    metadata["tenant"] = "other"
    assert options.metadata == {"tenant": "t", "nested": {"tags": ("a",)}}


def test_metadata_does_not_change_behind_a_read_only_view() -> None:
    behind = {"tenant": "t"}
    options = CallOptions((user("hi"),), metadata=MappingProxyType(behind))
    behind["tenant"] = "other"
    assert options.metadata == {"tenant": "t"}


def test_the_metadata_of_a_decision_is_frozen_as_that_of_a_call() -> None:
    metadata: dict[str, str] = {"tenant": "t"}
    options = DecideOptions((), {}, metadata=metadata)
    metadata["tenant"] = "other"
    assert options.metadata == {"tenant": "t"}


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.__setitem__("a", 1),
        lambda m: m.__delitem__("tenant"),
        lambda m: m.update(a=1),
        lambda m: m.pop("tenant"),
        lambda m: m.popitem(),
        lambda m: m.clear(),
        lambda m: m.setdefault("a", 1),
        lambda m: m.__ior__({"a": 1}),
        lambda m: m["nested"].update(a=1),
    ],
)
def test_metadata_refuses_every_change(change: typing.Callable[[typing.Any], object]) -> None:
    options = CallOptions((user("hi"),), metadata={"tenant": "t", "nested": {}})
    with pytest.raises(TypeError, match="read-only"):
        change(options.metadata)
    assert options.metadata == {"tenant": "t", "nested": {}}


def test_more_metadata_is_another_mapping() -> None:
    options = CallOptions((user("hi"),), metadata={"tenant": "t"})
    assert options.metadata is not None
    more = options.replace(metadata={**options.metadata, "user": "u"})
    assert more.metadata == {"tenant": "t", "user": "u"}


def test_freezing_what_is_frozen_makes_no_copy() -> None:
    frozen = frozen_json({"a": {}})
    assert frozen_json(frozen) is frozen
    assert isinstance(frozen, FrozenDict)
    assert copy.copy(frozen) is frozen


def test_options_for_a_helper_keep_the_metadata_and_nothing_of_the_request() -> None:
    options = CallOptions((user("hi"),), temperature=1, tools=(), metadata={"tenant": "t"})
    helper = options.for_helper(prompt=[user("judge this")])
    assert helper == CallOptions((user("judge this"),), metadata={"tenant": "t"})
    assert helper.context.helper


# ---------------------------------------------------------------------------------------------------------------- repr

SECRET = "correct horse battery"
LABELS = {
    *("type", "role", "id", "kind", "name", "status", "provider", "model_id", "media_type", "source_type"),
    *("tool_name", "tool_call_id", "approval_id", "unified", "raw", "feature"),
}


def content_fields(cls: type[Value]) -> list[tuple[str, list[object]]]:
    """The fields that may hold what somebody wrote, each with ways to hold the secret there."""
    hints = typing.get_type_hints(cls)
    found = []
    for name in field_names(cls):
        text = str(hints[name])
        forms: list[object] = []
        if "object" in text and "Mapping" not in text:
            forms += [SECRET, [SECRET], {SECRET: SECRET}, {"deep": [{"er": SECRET}]}, ValueError(SECRET)]
        if "str" in text and name not in LABELS and "Mapping" not in text:
            forms.append(SECRET)
        if "Url" in text:
            forms.append(Url(f"https://example.com/?key={SECRET}"))
        if "bytes" in text:
            forms.append(SECRET.encode())
        if "Mapping" in text:
            forms += [{SECRET: {SECRET: SECRET}}, MappingProxyType({"a": SECRET})]
        if forms:
            found.append((name, forms))
    return found


@each_type
@few
@given(data=st.data())
def test_no_content_ever_shows_up_in_a_repr(cls: type[Value], data: st.DataObject) -> None:
    one = data.draw(values_of(cls))
    for name, forms in content_fields(cls):
        # Past the constructor's checks, since a repr has to hold for whatever a field was given.
        for form in forms:
            spoilt = copy.copy(one)
            object.__setattr__(spoilt, name, form)
            assert SECRET not in repr(spoilt)
            assert SECRET not in repr(GenerateResult((spoilt,)))


@given(number=st.integers(10**12, 10**13))
@quick
def test_a_number_in_free_json_is_content_and_not_shown(number: int) -> None:
    for holder in (JsonOutput(number), ToolResult("c", "t", number), RequestInfo(number), Usage(raw=number)):
        assert str(number) not in repr(holder)


@given(options=options_)
@quick
def test_the_repr_of_options_shows_no_user_text(options: CallOptions) -> None:
    secretive = options.replace(
        prompt=[user(SECRET), SystemMessage(SECRET), UserMessage([FilePart("text/plain", SECRET.encode())])],
        metadata={"session": SECRET},
        headers={"authorization": SECRET},
        stop_sequences=[SECRET],
    )
    assert SECRET not in repr(secretive)


def test_a_repr_shows_the_shape() -> None:
    assert repr(CallOptions((user("hello"),), temperature=0, metadata={"a": 1})) == (
        "CallOptions(prompt=(UserMessage(content=(TextPart(text=<5 chars>),)),), temperature=0, metadata=<1 items>)"
    )
    assert repr(ToolCall("c1", "search", "{}")) == "ToolCall(tool_call_id='c1', tool_name='search', input=<2 chars>)"


def test_a_repr_names_the_class_of_an_error_and_not_its_message() -> None:
    assert repr(ErrorPart(ValueError(SECRET))) == "ErrorPart(error=<ValueError>)"


def test_a_repr_leaves_out_what_is_not_set_but_not_what_ends_like_it() -> None:
    assert repr(FinishReason("stop")) == "FinishReason(unified='stop')"
    assert repr(FinishReason("stop", "x=None")) == "FinishReason(unified='stop', raw='x=None')"


def test_a_label_that_is_too_long_to_be_one_is_not_shown() -> None:
    assert repr(UnknownPart("t" * 300, {})) == "UnknownPart(type=<300 chars>, data=<0 items>)"


def test_an_address_is_shown_by_its_length() -> None:
    assert repr(Url("https://a.b/?sig=x")) == "Url(<18 chars>)"


def test_a_tool_is_shown_without_its_schema() -> None:
    tool = FunctionTool("search", {"type": "object", "description": SECRET}, description=SECRET)
    assert repr(tool) == "FunctionTool(name='search', input_schema=<2 items>, description=<21 chars>)"
