"""Whether something can be driven by the loop."""

from __future__ import annotations

from typing import TypeGuard

from ..protocol import LanguageModel


def has_native_do_generate(value: object) -> TypeGuard[LanguageModel]:
    """Whether it has a `do_generate` to call, as every model of this library does; a name of a model has none."""
    return not isinstance(value, type) and callable(getattr(value, "do_generate", None))
