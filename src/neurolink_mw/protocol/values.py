"""How the protocol's value types are made: frozen slotted dataclasses that are cheap to build and to copy.

A stream builds one part per token, so three things that `dataclasses` does slowly are generated here instead:
`__init__` and `replace` store into the slots directly (a third less than a frozen dataclass's own init, a fifth of
`dataclasses.replace`), and `__repr__` shows shapes, never content, so that a log line cannot leak a prompt.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, ClassVar, NoReturn, Self, TypeAlias, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    JSON: TypeAlias = bool | int | float | str | list["JSON"] | tuple["JSON", ...] | Mapping[str, "JSON"] | None
    JSONObject: TypeAlias = Mapping[str, JSON]
else:
    # Read at run time only by the serializer, which takes `object` for "any JSON value".
    JSON = object
    JSONObject = Mapping[str, object]

T = TypeVar("T")

# Identifiers and labels. Every other text may be a user's and is shown by its length alone.
_SHOWN_IN_REPR = frozenset(
    {
        *("type", "role", "id", "kind", "name", "status", "provider", "model_id", "media_type", "source_type"),
        *("tool_name", "tool_call_id", "approval_id", "unified", "raw", "feature"),
    }
)


class Value:
    """Base of all protocol types: immutable, compared by value, copied with `replace`."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()

    def replace(self, **changes: object) -> Self:
        """A copy with some fields changed. An unknown field is a `TypeError`."""
        raise TypeError(f"{type(self).__name__} is not a protocol value: decorate it with @value")

    def __repr__(self) -> str:
        fields = (f for f in dataclasses.fields(self) if f.repr)  # type: ignore[arg-type]  # made by @value
        shown = (f"{f.name}={_shape(f, item)}" for f in fields if (item := getattr(self, f.name)) is not None)
        return f"{type(self).__name__}({', '.join(shown)})"


def _shape(f: dataclasses.Field[object], value: object) -> str:
    free = str(f.type).startswith(("JSON", "object"))  # there even a number is content: an account, a birthday
    if isinstance(value, str):
        shown = not free and f.name in _SHOWN_IN_REPR and len(value) <= 200
        return repr(str(value)) if shown else f"<{len(value)} chars>"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, tuple) and all(isinstance(item, Value) for item in value):
        return f"({', '.join(map(repr, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, Mapping | tuple | list):
        return f"<{len(value)} items>"
    return repr(value) if not free and isinstance(value, bool | int | float | Value) else f"<{type(value).__name__}>"


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def value(cls: type[T]) -> type[T]:
    """Class decorator: a frozen, slotted dataclass with a generated `__init__` and `replace`."""
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else dataclass() writes a signature there, which takes longer than all the rest
    made = dataclasses.dataclass(frozen=True, slots=True, repr=False, init=False)(cls)
    made.__init__, made.replace = _generate(made)  # type: ignore[method-assign,attr-defined]  # generated members
    return made


_WIDE = 8  # from so many fields on, two changes of class cost less than a descriptor's call for each field


def _generate(cls: type) -> tuple[Callable[..., None], Callable[..., object]]:
    fields = [f for f in dataclasses.fields(cls) if f.init]
    # A copy is filled in as an instance of a twin without the freeze, where storing into a slot is one bytecode, and
    # becomes frozen by taking the real class: the two have one layout.
    twin = type(cls.__name__, cls.__bases__, {"__slots__": tuple(f.name for f in fields)})
    scope: dict[str, object] = {"_cls": cls, "_twin": twin, "_KEEP": object()}
    scope["_set_class"] = object.__dict__["__class__"].__set__
    arguments, defaults, changes = [], [], []
    for f in fields:
        scope[f"_set_{f.name}"] = getattr(cls, f.name).__set__
        if f.default is not dataclasses.MISSING:
            scope[f"_default_{f.name}"] = f.default
            arguments.append(f"{f.name}=_default_{f.name}")
        elif f.default_factory is not dataclasses.MISSING:
            scope[f"_factory_{f.name}"] = f.default_factory
            arguments.append(f"{f.name}=_KEEP")
            defaults.append(f"    if {f.name} is _KEEP: {f.name} = _factory_{f.name}()")
        else:
            arguments.append(f.name)
        changes.append(f"{f.name}=_KEEP")
    settles = hasattr(cls, "__post_init__")
    source = [f"def __init__(self, {', '.join(arguments)}):", *defaults]
    if len(fields) >= _WIDE:
        source += ["    if self.__class__ is _cls:", "        _set_class(self, _twin)"]
        source += [f"        self.{f.name} = {f.name}" for f in fields]
        source += ["        self.__class__ = _cls", "    else:"]
        source += [f"        _set_{f.name}(self, {f.name})" for f in fields]
    else:
        source += [f"    _set_{f.name}(self, {f.name})" for f in fields]
    source += ["    self.__post_init__()" if settles else "    return None"]
    source += [f"def replace(self, *, {', '.join(changes)}):" if changes else "def replace(self):"]
    source += ["    new = _twin()"]
    source += [f"    new.{f.name} = self.{f.name} if {f.name} is _KEEP else {f.name}" for f in fields]
    source += ["    new.__class__ = _cls"]
    source += ["    new.__post_init__()"] if settles else []
    source += ["    return new"]
    made: dict[str, Callable[..., None]] = {}
    exec("\n".join(source), scope, made)
    for name, function in made.items():
        function.__qualname__ = f"{cls.__qualname__}.{name}"
        function.__module__ = cls.__module__
    return made["__init__"], made["replace"]


def copier(cls: type[T], field: str) -> Callable[[T, object], T]:
    """A function `(value, new)` that copies a value with one field changed, for where every call makes a copy.

    It skips what `replace` does for comfort: keyword handling and `__post_init__`.
    """
    replace: FunctionType = cls.replace  # type: ignore[attr-defined]  # @value put it there
    names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]  # a dataclass
    source = ["def copy(self, value):", "    new = _twin()"]
    source += [f"    new.{name} = {'value' if name == field else f'self.{name}'}" for name in names]
    source += ["    new.__class__ = _cls", "    return new"]
    made: dict[str, Callable[[T, object], T]] = {}
    exec("\n".join(source), replace.__globals__, made)
    return made["copy"]


def list_as_tuple(owner: Value, name: str, remedy: str = "") -> None:
    """Store what a field was given as a tuple. One text or one value is not a list: TypeError, with the remedy."""
    items: object = getattr(owner, name)
    if not isinstance(items, Iterable) or isinstance(items, str | bytes | Mapping | Value):
        raise TypeError(f"{type(owner).__name__}.{name} is a list, not {type(items).__name__}{remedy}")
    object.__setattr__(owner, name, tuple(items))


class FrozenDict(dict[str, JSON]):
    """A dict that refuses to change. Unlike a read-only view it can be pickled, copied and written as JSON, and nobody
    else holds the dict behind it."""

    __slots__ = ()

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("this mapping is read-only: make another, as in {**metadata, 'key': value}")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> FrozenDict:
        return self

    def __hash__(self) -> int:  # type: ignore[override]  # it cannot change
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, JSON]]]:
        return FrozenDict, (dict(self),)


def frozen_json(value: object) -> object:
    """A deep read-only copy of a JSON value: mappings become read-only, lists become tuples."""
    if isinstance(value, FrozenDict):
        return value
    if isinstance(value, Mapping):
        return FrozenDict({str(key): cast(JSON, frozen_json(item)) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(frozen_json(item) for item in value)
    return value
