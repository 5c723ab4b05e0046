"""A chain that cannot be built never runs the bare model: whatever is wrong is said before any call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from neurolink_mw.errors import ConfigError, NeurolinkError
from neurolink_mw.pipeline import BuildContext, Middleware, Use, When, wrap_model
from neurolink_mw.testing import ScriptedModel

from .builders import Layer, Member


class Unbound(Middleware):
    def bind(self, build: BuildContext) -> None:
        build.model("nobody")


def yields(*args: object) -> object:
    yield


Refused = Callable[[], Sequence[Middleware | Use]]

CHAINS: dict[str, Refused] = {
    "a class": lambda: [Layer],  # type: ignore[list-item]
    "no member": lambda: ["caching"],  # type: ignore[list-item]
    "no list": lambda: Layer(),  # type: ignore[dict-item,return-value]
    "a duplicate": lambda: [Layer("a"), Layer("a")],
    "a cycle": lambda: [Use(Layer("a"), before=["b"]), Use(Layer("b"), before=["a"])],
    "an unknown id": lambda: [Use(Layer("a"), before=["nobody"])],
    "one string of ids": lambda: [Use(Layer("a"), before="nobody")],
    "an unknown option": lambda: [Use(Layer("a"), when=When(options={"temprature": 0}))],
    "a condition that is none": lambda: [Use(Layer("a"), when="always")],  # type: ignore[arg-type]
    "an invalid config": lambda: [Layer(), Unbound(limit=3)],
    "a model that is not there": lambda: [Layer(), Unbound()],
    "a hook that is no function": lambda: [Member(wrap_stream=3)],
    "a hook that yields": lambda: [Member(transform_params=yields)],
    "an id that is taken": lambda: [Layer("model")],
}


@pytest.mark.parametrize("fault", list(CHAINS))
def test_a_chain_that_cannot_be_built_is_refused_before_any_call(fault: str) -> None:
    model = ScriptedModel("never")
    with pytest.raises(ConfigError) as caught:
        wrap_model(model, CHAINS[fault]())
    assert isinstance(caught.value, NeurolinkError)
    assert model.calls == []


@pytest.mark.parametrize("fault", ["a hook that is no function", "a model that is not there"])
def test_one_bad_member_among_good_ones_is_enough(fault: str) -> None:
    with pytest.raises(ConfigError):
        wrap_model(ScriptedModel("never"), [Layer("first"), *CHAINS[fault](), Layer("last")])


def test_what_an_override_raises_stops_the_build() -> None:
    def fail(model: object) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        wrap_model(ScriptedModel("never"), [Member(override_provider=fail)])
