"""The tables of members, against the types of the installed SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Required, get_args, get_origin

import pytest
from anthropic.types.beta import (
    BetaMessageParam,
    BetaThinkingConfigParam,
    BetaToolChoiceParam,
    BetaToolParam,
    message_create_params,
)
from anthropic.types.beta.beta_content_block_param import BetaContentBlockParam
from anthropic.types.message_create_params import MessageCreateParamsBase
from typing_extensions import get_type_hints, is_typeddict

from neurolink_mw.testing.wire import anthropic_members as tables
from neurolink_mw.testing.wire.anthropic_members import Members

HEADERS = {"betas", "user_profile_id", "workspace_id"}
"""What the SDK's methods take as arguments and send as headers."""


def declared(params: Any) -> tuple[set[str], set[str]]:
    """The required and the optional keys of a type of the SDK, `type` left out."""
    hints = get_type_hints(params, include_extras=True)
    required = {name for name, hint in hints.items() if _is_required(hint)}
    return required - {"type"}, hints.keys() - required - {"type"}


def _is_required(hint: Any) -> bool:
    origin: object = get_origin(hint)
    return origin is Required


def by_tag(union: Any, tag: str) -> Iterator[tuple[str, Any]]:
    """The types in a union, by the value of their tag."""
    if is_typeddict(union):
        yield get_args(get_type_hints(union)[tag])[0], union
    for one in () if is_typeddict(union) else get_args(union):
        yield from by_tag(one, tag)


def same(members: Members, params: Any) -> None:
    assert (set(members.required), set(members.optional)) == declared(params)


def test_a_request_has_the_members_of_the_sdk_and_the_sampling_it_dropped() -> None:
    stable, beta = declared(MessageCreateParamsBase), declared(message_create_params.MessageCreateParamsBase)
    taken = {*tables.REQUEST.required, *tables.HOSTED["anthropic"].required}
    offered = {*tables.REQUEST.optional, *tables.HOSTED["anthropic"].optional}
    assert taken == stable[0] == beta[0]
    assert offered == (stable[1] | beta[1] | {"stream"} | set(tables.SAMPLING)) - HEADERS


@pytest.mark.parametrize(
    ("table", "union"),
    [
        (tables.BLOCKS, BetaContentBlockParam),
        (tables.THINKING, BetaThinkingConfigParam),
        (tables.CHOICES, BetaToolChoiceParam),
    ],
)
def test_what_has_a_type_has_the_members_of_the_sdk(table: dict[str, Members], union: Any) -> None:
    types = dict(by_tag(union, "type"))
    assert table.keys() == types.keys()
    for kind, params in types.items():
        same(table[kind], params)


def test_messages_have_the_members_of_the_sdk() -> None:
    roles = dict(by_tag(BetaMessageParam, "role"))
    assert tables.MESSAGE.keys() == roles.keys()
    for role, params in roles.items():
        same(tables.MESSAGE[role], params)


def test_a_tool_has_the_members_of_the_sdk() -> None:
    same(tables.TOOL, BetaToolParam)


def test_only_known_blocks_belong_to_one_role() -> None:
    assert tables.ROLES.keys() <= tables.BLOCKS.keys()
    assert get_origin(tables.Host) is Literal
