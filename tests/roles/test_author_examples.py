"""What a plugin author writes: two examples, and how little there is of them."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.pipeline.builders import ASKED, read

from neurolink_mw.pipeline import wrap_model
from neurolink_mw.protocol import CallOptions, GenerateResult, collect
from neurolink_mw.testing import ScriptedModel, check_middleware, check_stream

from .builders import Watch, leaky, text, whole

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of(name: str, cls: str) -> int:
    """How many lines of a class are code."""
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    (node,) = [one for one in ast.parse(source).body if isinstance(one, ast.ClassDef) and one.name == cls]
    lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
    return sum(1 for line in lines if line.strip())


@pytest.mark.parametrize(("name", "cls", "most"), [("block_word", "BlockWord", 6), ("exact_cache", "ExactCache", 15)])
def test_an_author_writes_few_lines(name: str, cls: str, most: int) -> None:
    assert lines_of(name, cls) <= most


@pytest.mark.parametrize(("name", "cls"), [("block_word", "BlockWord"), ("exact_cache", "ExactCache")])
def test_it_registers_itself(name: str, cls: str) -> None:
    registered: list[type] = []
    module = example(name)
    module.register_middlewares(registered.append)
    assert registered == [getattr(module, cls)]


@pytest.fixture
def block_word() -> Any:
    return example("block_word").BlockWord()


@pytest.fixture
def exact_cache() -> Any:
    return example("exact_cache").ExactCache()


@pytest.mark.anyio
async def test_the_word_is_blocked_streamed_and_not(block_word: Any) -> None:
    model = wrap_model(ScriptedModel([whole(text("a Bo", "mB"))], repeat=True), [block_word])
    seen = await read(model)
    check_stream(seen)
    for answer in (collect(seen), await model.do_generate(ASKED)):
        assert (answer.text, answer.finish_reason.raw) == ("I will not say that.", "blocked-word")
    assert not leaky(seen, "Bo")


@pytest.mark.anyio
async def test_the_cache_answers_each_call_by_what_the_other_kept(exact_cache: Any) -> None:
    watch = Watch()
    inside = ScriptedModel(["Paris.", "Rome."])
    model = wrap_model(inside, [watch, exact_cache])
    other = CallOptions.from_text("Italy?")
    assert (await model.do_generate(ASKED)).text == collect(await read(model)).text == "Paris."
    assert collect(await read(model, other)).text == (await model.do_generate(other)).text == "Rome."
    assert len(inside.calls) == 2
    assert [outcome.answered_by for outcome in watch.outcomes] == ["model", "exact_cache", "model", "exact_cache"]


@pytest.mark.anyio
async def test_it_keeps_neither_what_failed_nor_what_was_left(exact_cache: Any) -> None:
    failed = GenerateResult((), collect(whole(finish=None)).finish_reason)
    model = wrap_model(ScriptedModel([failed, "half", "Paris."]), [exact_cache])
    assert (await model.do_generate(ASKED)).finish_reason.unified == "error"
    async with (await model.do_stream(ASKED)).stream as stream:
        await anext(stream)
    assert (await model.do_generate(ASKED)).text == "Paris."


@pytest.mark.parametrize("name", ["block_word", "exact_cache"])
def test_both_keep_the_contract(name: str) -> None:
    module = example(name)
    check_middleware(module.BlockWord if name == "block_word" else module.ExactCache)
