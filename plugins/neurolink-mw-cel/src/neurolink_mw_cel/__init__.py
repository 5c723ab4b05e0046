"""A neurolink-mw plugin: `cel` allows, denies and flags requests by rules in the Common Expression Language.

What rules may look at is in `attributes`, what a rule is in `rules`, who asks them in `policy`.
"""

from __future__ import annotations

from collections.abc import Callable

from neurolink_mw import hookimpl
from neurolink_mw.roles import RequestPolicy

from .policy import CelConfig, CelPolicy
from .rules import Rule

__all__ = ["CelConfig", "CelPolicy", "Rule"]

requires_api = 1


@hookimpl
def register_middlewares(register: Callable[[type[RequestPolicy]], None]) -> None:
    register(CelPolicy)
