"""What the README says, holds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from neurolink_mw_cel import CelPolicy
from neurolink_mw_cel.attributes import PARAMS, READERS
from neurolink_mw_cel.rules import FUNCTIONS, CompiledRule

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_example_is_a_policy() -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```$", README, re.M | re.S)
    (entry,) = tomllib.loads(example)["middlewares"]
    assert entry["id"] == CelPolicy.id
    assert all(isinstance(rule, CompiledRule) for rule in CelPolicy(**entry["config"]).rules)


def test_every_attribute_is_in_the_table() -> None:
    (table,) = re.findall(r"^## Attributes\n\n(.*?)\n\n", README, re.M | re.S)
    rows = [row.split("|") for row in table.splitlines()[2:]]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row[1])} == set(READERS)
    (params,) = [row[3] for row in rows if "`params`" in row[1]]
    assert set(re.findall(r"`(\w+)`", params)) == set(PARAMS)


def test_every_function_that_is_named_is_one() -> None:
    (named,) = re.findall(r"^Functions: (.*?)and the macros", README, re.M | re.S)
    assert set(re.findall(r"`(\w+)`", named)) <= FUNCTIONS
