"""JSON in and out, in the AI SDK's spelling, so that calls and answers can be exchanged with TypeScript services.

Keys are camelCase, bytes are base64, times are ISO 8601. What this version does not know survives: unknown part types
as `UnknownPart`, unknown fields in `extra`. Fields that are not set are left out; a JSON null reads as "not set".
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, TypeVar, Union, get_args, get_origin

from ..errors import NeurolinkError, ProtocolError, ProviderError, TurnError
from .content import UnknownPart, Url
from .context import CallContext
from .values import JSON, Value

T = TypeVar("T")

Encode = Callable[[object], JSON]
Decode = Callable[[object, str], object]

_TAGS = ("type", "role")
_NOT_SENT = frozenset({"context"})


def to_json(obj: object) -> JSON:
    """A protocol value, or a list or mapping of them, as JSON-compatible data.

    `context` is never written. An exception in an error part is written as its class and message, with status and
    retryability where it is a provider's. Raises ProtocolError whose `path` names what has no JSON form.
    """
    try:
        return _write(obj)
    except _NoJson:
        path, culprit = _first_without_json(obj, "")
        raise ProtocolError(
            f"{type(culprit).__name__} has no JSON form: use text, numbers, booleans, lists, mappings, bytes or times",
            path=path,
        ) from None


class _NoJson(Exception):
    pass


def _write(obj: object) -> JSON:
    if isinstance(obj, UnknownPart):
        return {"type": obj.type, **{key: _write(item) for key, item in obj.data.items() if key != "type"}}
    if isinstance(obj, Value):
        return _value_to_json(obj)
    if isinstance(obj, str):
        return str.__str__(obj)  # `str()` of a member of an enum would be its name
    if isinstance(obj, bytes | bytearray):
        return base64.b64encode(obj).decode("ascii")
    if isinstance(obj, datetime):
        return _time_to_json(obj)
    if isinstance(obj, Mapping):
        return {str(key): _write(item) for key, item in obj.items()}
    if isinstance(obj, Sequence):
        return [_write(item) for item in obj]
    if obj is None or isinstance(obj, bool | int | float):
        return obj
    if isinstance(obj, BaseException):
        return _error_to_json(obj)
    raise _NoJson


def _first_without_json(obj: object, path: str) -> tuple[str, object]:
    """The place of what `_write` stumbled over. Only looked for when there is something to report."""
    inside: list[tuple[str, object]] = []
    if isinstance(obj, UnknownPart):
        obj = obj.data
    if isinstance(obj, Value):
        inside = [(_join(path, key), getattr(obj, name)) for name, key, _ in _keys(type(obj))]
        inside += [(_join(path, str(key)), item) for key, item in (getattr(obj, "extra", None) or {}).items()]
    elif isinstance(obj, Mapping):
        inside = [(_join(path, str(key)), item) for key, item in obj.items()]
    elif isinstance(obj, Sequence):
        inside = [(f"{path}[{index}]", item) for index, item in enumerate(obj)]
    for place, item in inside:
        try:
            _write(item)
        except _NoJson:
            return _first_without_json(item, place)
    return path, obj


def from_json(type: type[T] | object, data: object) -> T:
    """The value of a type, or of a union such as `StreamPart`, that JSON data describes.

    Raises ProtocolError whose `path` names the place, as in `prompt[2].content[0].data`.
    """
    decoded = _decoder(type)(data, "")
    return typing.cast(T, decoded)


def camel_case(name: str) -> str:
    """`max_output_tokens` as `maxOutputTokens`."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


# ---------------------------------------------------------------------------------------------------------- writing


def _value_to_json(obj: Value) -> JSON:
    out: dict[str, JSON] = {}
    for tag in _TAGS:
        if isinstance(label := getattr(type(obj), tag, None), str):
            out[tag] = label
    for name, key, required in _keys(type(obj)):
        item = getattr(obj, name)
        if item is not None:
            out[key] = _write(item)
            if name == "data" and isinstance(item, Url) and not _ADDRESS.match(item):
                out[key] = {"type": "url", "url": str(item)}  # a bare one would read as base64: V4's form
        elif required:  # a field that must be there, and whose value is JSON's null
            out[key] = None
    extra = getattr(obj, "extra", None)
    if extra:
        for key, item in extra.items():
            out.setdefault(key, _write(item))
    return out


_keys_of: dict[type, tuple[tuple[str, str, bool], ...]] = {}


def _keys(cls: type) -> tuple[tuple[str, str, bool], ...]:
    """Of each field its name, its key in JSON, and whether it is required."""
    keys = _keys_of.get(cls)
    if keys is None:
        sent = (f for f in dataclasses.fields(cls) if f.name not in _NOT_SENT and f.name != "extra")
        keys = _keys_of[cls] = tuple((f.name, camel_case(f.name), _is_required(f)) for f in sent)
    return keys


def _time_to_json(moment: datetime) -> str:
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    # JavaScript's own form has milliseconds. Finer times are written out, since both sides can read them.
    return moment.isoformat(timespec="microseconds" if moment.microsecond % 1000 else "milliseconds") + "Z"


def _error_to_json(error: BaseException) -> JSON:
    out: dict[str, JSON] = {"name": type(error).__name__}
    if isinstance(error, NeurolinkError):  # anyone else's message may quote the content that it failed on
        out["message"] = str(error)
    if isinstance(error, ProviderError):
        out["isRetryable"] = error.retryable
        for key, item in (
            ("statusCode", error.status),
            ("retryAfter", error.retry_after),
            ("requestId", error.request_id),
        ):
            if item is not None:
                out[key] = item
    if isinstance(error, TurnError) and error.__cause__ is not None:
        out["cause"] = _error_to_json(error.__cause__)  # which is what happened; the turn says how far it came
    return out


# ---------------------------------------------------------------------------------------------------------- reading

_decoders: dict[object, Decode] = {}


def _decoder(wanted: object) -> Decode:
    try:
        known = _decoders.get(wanted)
    except TypeError:  # an unhashable annotation
        return _make_decoder(wanted)
    if known is None:
        known = _decoders[wanted] = _make_decoder(wanted)
    return known


def _make_decoder(wanted: object) -> Decode:
    origin = get_origin(wanted)
    if wanted is object:
        return lambda data, path: data
    if origin is Union or origin is types.UnionType:
        return _union(get_args(wanted))
    if origin is Literal:
        return _one_of(get_args(wanted))
    if origin is tuple or origin is Sequence or origin is list:
        return _list(_decoder(get_args(wanted)[0]))
    if origin is Mapping or origin is dict:
        return _mapping(_decoder(get_args(wanted)[1]))
    if isinstance(wanted, type):
        if issubclass(wanted, Value):
            return _value(wanted)
        if wanted in _SCALARS:
            return _SCALARS[wanted]
    raise TypeError(f"from_json() reads protocol types, not {wanted!r}")


def _value(cls: type[Value]) -> Decode:
    if cls is UnknownPart:
        return _unknown
    hints = typing.get_type_hints(cls)
    keeps_extra = "extra" in hints
    plan = [(name, key, _decoder(hints[name]), required) for name, key, required in _keys(cls)]
    known = {key for _, key, _, _ in plan}
    labels = {tag: label for tag in _TAGS if isinstance(label := getattr(cls, tag, None), str)}

    def decode(data: object, path: str) -> object:
        record = _as_object(data, path)
        values: dict[str, object] = {}
        for tag, label in labels.items():
            if record.get(tag, label) != label:
                raise ProtocolError(f"expected {label!r}", path=_join(path, tag))
        for name, key, decode_field, required in plan:
            item = record.get(key)
            if item is not None or (required and key in record):
                values[name] = decode_field(item, _join(path, key))
            elif required:
                raise ProtocolError(f"{cls.__name__} needs it", path=_join(path, key))
        if keeps_extra:
            extra = {key: item for key, item in record.items() if key not in known and key not in labels}
            if extra:
                values["extra"] = extra
        made: Value = cls(**values)
        return made

    return decode


def _is_required(f: dataclasses.Field[object]) -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def _union(members: tuple[object, ...]) -> Decode:
    if type(None) in members:
        decode = _union(tuple(member for member in members if member is not type(None)))
        return lambda data, path: None if data is None else decode(data, path)
    if members == (bytes, Url) or set(members) == {bytes, Url}:
        return _file_data
    values = [member for member in members if isinstance(member, type) and issubclass(member, Value)]
    if values and len(values) == len(members) and len(values) > 1:
        return _tagged_union(values)
    if len(members) == 1:
        return _decoder(members[0])
    return lambda data, path: data  # a union of plain JSON types


def _tagged_union(members: Sequence[type[Value]]) -> Decode:
    tag = "role" if hasattr(members[0], "role") else "type"
    by_label = {getattr(member, tag): member for member in members if member is not UnknownPart}
    open_ended = UnknownPart in members

    def decode(data: object, path: str) -> object:
        label = _as_object(data, path).get(tag)
        if isinstance(label, str):
            if (member := by_label.get(label)) is not None:
                return _decoder(member)(data, path)
            if open_ended:
                return _unknown(data, path)
        raise ProtocolError(f"expected one of {', '.join(by_label)}", path=_join(path, tag))

    return decode


def _unknown(data: object, path: str) -> object:
    record = _as_object(data, path)
    label = record.get("type")
    if not isinstance(label, str):
        raise ProtocolError("a part has a type", path=_join(path, "type"))
    return UnknownPart(label, {key: typing.cast(JSON, item) for key, item in record.items() if key != "type"})


def _list(decode_item: Decode) -> Decode:
    def decode(data: object, path: str) -> object:
        if not isinstance(data, list | tuple):
            raise ProtocolError(f"expected a list, not {_name(data)}", path=path)
        return tuple(decode_item(item, f"{path}[{index}]") for index, item in enumerate(data))

    return decode


def _mapping(decode_item: Decode) -> Decode:
    def decode(data: object, path: str) -> object:
        return {key: decode_item(item, _join(path, key)) for key, item in _as_object(data, path).items()}

    return decode


def _one_of(allowed: tuple[object, ...]) -> Decode:
    def decode(data: object, path: str) -> object:
        if data not in allowed:
            raise ProtocolError(f"expected one of {', '.join(map(str, allowed))}", path=path)
        return data

    return decode


def _text(data: object, path: str) -> object:
    if not isinstance(data, str):
        raise ProtocolError(f"expected a string, not {_name(data)}", path=path)
    return data


def _integer(data: object, path: str) -> object:
    if isinstance(data, float) and data.is_integer():
        return int(data)  # JavaScript has one kind of number
    if not isinstance(data, int) or isinstance(data, bool):
        raise ProtocolError(f"expected a whole number, not {_name(data)}", path=path)
    return data


def _number(data: object, path: str) -> object:
    if not isinstance(data, int | float) or isinstance(data, bool):
        raise ProtocolError(f"expected a number, not {_name(data)}", path=path)
    return data


def _boolean(data: object, path: str) -> object:
    if not isinstance(data, bool):
        raise ProtocolError(f"expected true or false, not {_name(data)}", path=path)
    return data


def _bytes(data: object, path: str) -> object:
    if isinstance(data, bytes):
        return data
    if not isinstance(data, str):
        raise ProtocolError(f"expected base64 text, not {_name(data)}", path=path)
    try:
        # The AI SDK reads the URL-safe alphabet too, and text without padding.
        standard = data.translate(_FROM_URL_SAFE) if "-" in data or "_" in data else data
        return base64.b64decode(standard + "=" * (-len(data) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ProtocolError("this is not base64", path=path) from None


_FROM_URL_SAFE = str.maketrans("-_", "+/")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)  # base64 has no colon


def _file_data(data: object, path: str) -> object:
    if isinstance(data, Mapping):  # V4 tags the data; V3 leaves it to the value's form
        tag = data.get("type")
        if tag == "data":
            return _bytes(data.get("data"), _join(path, "data"))
        if tag == "url":
            return Url(_text(data.get("url"), _join(path, "url")))
        if tag == "text":
            return str(_text(data.get("text"), _join(path, "text"))).encode()
        raise ProtocolError("expected base64 text, an address, or data / url / text", path=path)
    if isinstance(data, Url) or (isinstance(data, str) and _ADDRESS.match(data)):
        return Url(data)
    return _bytes(data, path)


def _address(data: object, path: str) -> object:
    return Url(_text(data, path))


def _time(data: object, path: str) -> object:
    if isinstance(data, datetime):
        return data
    text = str(_text(data, path))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ProtocolError("expected an ISO 8601 time", path=path) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


_SCALARS: dict[type, Decode] = {
    str: _text,
    int: _integer,
    float: _number,
    bool: _boolean,
    bytes: _bytes,
    Url: _address,
    datetime: _time,
    CallContext: lambda data, path: data,
}


def _as_object(data: object, path: str) -> Mapping[str, object]:
    if not isinstance(data, Mapping):
        raise ProtocolError(f"expected an object, not {_name(data)}", path=path)
    return data


def _name(data: object) -> str:
    return "null" if data is None else type(data).__name__


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)
