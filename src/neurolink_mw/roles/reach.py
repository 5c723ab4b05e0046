"""How far a regular expression reaches: the most characters that decide one match, context included."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any

from ..errors import ConfigError

# The parser that `re` itself uses. It has no public name, and nothing else knows the width of a pattern.
_parser: Any = importlib.import_module("re._parser")
_constants: Any = importlib.import_module("re._constants")
_LONGEST = 1 << 16
"""A stream that may hold back this much is held whole in practice: such a pattern is refused as unbounded."""


def reach_of(pattern: re.Pattern[str], where: str) -> int:
    """Characters. ConfigError for a pattern whose matches have no longest."""
    tree = _parser.parse(pattern.pattern, pattern.flags)
    width = tree.getwidth()[1] + _context(tree)
    if width >= _LONGEST:
        raise ConfigError(
            f"{where}: this pattern has no longest match, so no stream could be rewritten on its way: bound its "
            f"repeats, as in {{1,64}} for +, or write a TextTransform with an async transform, which gets whole blocks"
        )
    return max(1, int(width))


def _context(tree: Any) -> int:
    """What is looked at beside the match itself: assertions have no width of their own."""
    total = 0
    for kind, argument in tree:
        if kind in (_constants.ASSERT, _constants.ASSERT_NOT):
            _, inner = argument
            total += inner.getwidth()[1] + _context(inner)
        elif kind is _constants.AT:
            # `$` also stands before a newline, if nothing is behind that.
            total += 2 if argument is _constants.AT_END else 1
        elif kind in _REPEATS:
            _, most, inner = argument
            total += min(most, _LONGEST) * _context(inner)
        else:
            total += sum(_context(inner) for inner in _inside(argument))
    return min(total, _LONGEST)


_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)


def _inside(argument: Any) -> Iterable[Any]:
    """The patterns within an element of one: branches, groups, conditions."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, tuple | list):
        for item in argument:
            yield from _inside(item)
