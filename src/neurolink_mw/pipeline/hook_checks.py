"""What can be told of a hook without running it. A guard that is misspelt, or forgets its `return`, would otherwise be
found at the first call, or never."""

from __future__ import annotations

import dis
import inspect
import re
from types import CodeType, FunctionType

from ..errors import ConfigError
from .wording import did_you_mean

HOOKS = ("transform_params", "wrap_generate", "wrap_stream", "wrap_tool", "wrap_decide")
_LIKE_A_HOOK = re.compile(r"(wrap|transform|override)(_|[A-Z])")
OVERRIDES = ("override_provider", "override_model_id", "override_supported_urls")


def check_hooks(cls: type, base: type) -> None:
    """Check the hooks that a subclass of `base` defines. ConfigError names the hook and the remedy."""
    known = (*HOOKS, *OVERRIDES)
    own = (one for one in cls.__mro__ if one not in base.__mro__)  # mixins too
    for name, hook in ((name, hook) for one in own for name, hook in vars(one).items()):
        if name in known and isinstance(hook, FunctionType):
            _check_arguments(cls, name, hook, getattr(base, name))
            if hook.__code__.co_flags & inspect.CO_COROUTINE and _never_returns_a_value(hook.__code__):
                raise ConfigError(f"{cls.__name__}.{name} never returns anything: is there a `return` missing?")
        elif _LIKE_A_HOOK.match(name) and name not in known and callable(getattr(cls, name)):
            raise ConfigError(f"{cls.__name__}.{name} is no hook{did_you_mean(name, known)}")


def check_method(cls: type, name: str, expected: FunctionType, *, returns: bool) -> None:
    """Check a method that a class defines in place of one of a base. ConfigError as for hooks. returns: whether one
    that returns nothing is a mistake."""
    method = vars(cls).get(name)
    if isinstance(method, FunctionType):
        _check_arguments(cls, name, method, expected)
        if returns and _never_returns_a_value(method.__code__):
            raise ConfigError(f"{cls.__name__}.{name} never returns anything: is there a `return` missing?")


def _check_arguments(cls: type, name: str, hook: FunctionType, expected: FunctionType) -> None:
    given = [parameter.name for parameter in inspect.signature(expected).parameters.values()]
    try:
        inspect.signature(hook).bind(*given)
    except TypeError:
        raise ConfigError(f"{cls.__name__}.{name} is called as {name}({', '.join(given[1:])})") from None


def _never_returns_a_value(code: CodeType) -> bool:
    """Whether every way out of a function is its end or a bare `return`. One that always raises has none; where it
    does so within a `with`, its code has an end all the same, in case the context swallows the exception."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("NOP", "RESUME", "CACHE")]
    names = {step.opname for step in steps}
    if {"RAISE_VARARGS", "WITH_EXCEPT_START"} <= names:
        return False
    ways_out = []
    for before, step in zip([None, *steps], steps, strict=False):
        if step.opname == "RETURN_CONST":  # Python 3.12 and 3.13
            ways_out.append(step.argval is None)
        elif step.opname == "RETURN_VALUE":
            # Where something jumps to the return itself, another value may be on its way: `return x if y else None`.
            nothing = before is not None and before.opname == "LOAD_CONST" and before.argval is None
            ways_out.append(nothing and not step.is_jump_target)
    return bool(ways_out) and all(ways_out)
