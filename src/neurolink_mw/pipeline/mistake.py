"""A mistake of an author that shows at run time. Its message is ours and holds nothing of a call: it may be logged."""

from __future__ import annotations

from ..errors import ConfigError


class Mistake(ConfigError):
    """A hook or a check that returned what it must not."""
