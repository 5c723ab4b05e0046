"""Which refusals are made good by leaving a parameter out."""

from __future__ import annotations

import pytest

from neurolink_mw.providers.bedrock.repair import repair

NATIVE: dict[str, object] = {
    "modelId": "m",
    "messages": [],
    "inferenceConfig": {"maxTokens": 5, "temperature": 0.5, "topP": 0.9, "stopSequences": ["x"]},
    "additionalModelRequestFields": {"top_k": 3, "thinking": {"type": "enabled"}},
}


def refusal(message: str, code: str = "ValidationException") -> dict[str, object]:
    return {"Error": {"Code": code, "Message": message}}


@pytest.mark.parametrize(
    ("message", "name", "feature"),
    [
        (
            "This model doesn't support the stopSequences field. Remove stopSequences and try again.",
            *("stopSequences", "stopSequences"),
        ),
        ("This model doesn't support the temperature field. Remove temperature and try again.",) + ("temperature",) * 2,
        ("The model returned the following errors: top_k: Extra inputs are not permitted", "top_k", "topK"),
        ("The model returned the following errors: `temperature` is deprecated for this model.",)
        + ("temperature",) * 2,
        (
            "The model returned the following errors: `temperature` and `top_p` cannot both be specified for this "
            "model. Please use only one.",
            *("topP", "topP"),
        ),
        ("Malformed input request: #: extraneous key [top_k] is not permitted, please reformat", "top_k", "topK"),
        ("Malformed input request: #/inferenceConfig: extraneous key [topP] is not permitted", "topP", "topP"),
        ("Unsupported parameter: 'max_tokens' is not supported with this model.", "maxTokens", "maxOutputTokens"),
        ('"thinking.type.enabled" is not supported for this model.', "thinking", "reasoning"),
    ],
)
def test_a_parameter_that_is_named_as_unsupported_is_left_out(message: str, name: str, feature: str) -> None:
    repaired = repair(refusal(message), NATIVE)
    assert repaired is not None
    native, warning = repaired
    left_out = [
        key
        for member in ("inferenceConfig", "additionalModelRequestFields")
        for key in NATIVE[member]  # type: ignore[attr-defined]
        if key not in native[member]  # type: ignore[operator]
    ]
    assert left_out == [name]
    assert (warning.type, warning.feature) == ("unsupported", feature)


def test_a_group_that_is_left_empty_is_not_sent() -> None:
    native = {"modelId": "m", "inferenceConfig": {"temperature": 1}}
    repaired = repair(refusal("temperature: Extra inputs are not permitted"), native)
    assert repaired is not None
    assert repaired.native == {"modelId": "m"}


@pytest.mark.parametrize(
    "response",
    [
        refusal("This model doesn't support tool use in streaming mode."),
        refusal("This model doesn't support system messages. Try again without the system prompt"),
        refusal("messages: roles must alternate"),
        refusal("temperature: 2 is greater than 1"),
        refusal("seed is not supported"),
        refusal("temperature is not supported", "ThrottlingException"),
        {},
    ],
)
def test_anything_else_is_not_repaired(response: dict[str, object]) -> None:
    assert repair(response, NATIVE) is None


def test_a_field_of_an_object_of_the_model_s_own_is_left_out_of_it() -> None:
    native = {
        "modelId": "m",
        "additionalModelRequestFields": {"inferenceConfig": {"topK": 3}, "top_k": 4, "other": {"topK": 5}},
    }
    said = "Malformed input request: #/inferenceConfig: extraneous key [topK] is not permitted, please reformat"
    repaired = repair(refusal(said), native)
    assert repaired is not None
    assert repaired.native["additionalModelRequestFields"] == {"top_k": 4, "other": {"topK": 5}}


@pytest.mark.parametrize("word", ["a" * 100_000, "a." * 50_000, "[" * 100_000, "'a" * 50_000])
def test_a_long_word_in_a_message_is_read_in_no_time(word: str) -> None:
    assert repair(refusal(f"does not support {word} {word} is not supported"), NATIVE) is None
