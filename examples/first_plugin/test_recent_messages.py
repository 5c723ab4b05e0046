"""The plugin's own tests: `pip install . && pytest`."""

from __future__ import annotations

import anyio
from recent_messages import RecentMessages

from neurolink_mw import CallOptions, Pipeline
from neurolink_mw.protocol import Message, SystemMessage, user
from neurolink_mw.testing import ScriptedModel

PROMPT: list[Message] = [SystemMessage("be brief"), user("one"), user("two"), user("three")]


def sent(pipeline: Pipeline) -> list[Message]:
    model = ScriptedModel(["fine"])
    anyio.run(pipeline.wrap(model).do_generate, CallOptions(PROMPT))
    return list(model.calls[0].options.prompt)


def test_system_messages_and_the_newest_others_are_sent() -> None:
    assert sent(Pipeline([RecentMessages(keep=2)])) == [PROMPT[0], *PROMPT[2:]]


def test_a_short_prompt_is_left_as_it_is() -> None:
    assert sent(Pipeline([RecentMessages(keep=9)])) == PROMPT


def test_a_configuration_finds_it_by_its_entry_point() -> None:
    config = {"middlewares": [{"id": "recent_messages", "config": {"keep": 1}}]}
    assert sent(Pipeline.from_config(config)) == [PROMPT[0], PROMPT[3]]
