"""Turn pydantic's errors into plain messages: which option, what it takes, what was given."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ..errors import OptionError, UnknownNameError, nearest
from .other_names import other_names

_PLAIN = {int: "a whole number", float: "a number", bool: "True or False", str: "text", type(None): "None", dict: "a table"}
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}  # attributes of annotated_types
_BOUND_FAULTS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")


def option_error(record: type[BaseModel], values: Mapping[str, Any], problem: ValidationError) -> OptionError:
    """Return an OptionError, or an UnknownNameError, that lists every fault of `values`.

    record: the class that refused them.
    """
    faults: dict[Any, str] = {}
    is_unknown = False
    for error in problem.errors():
        cause = error.get("ctx", {}).get("error")
        name = error["loc"][0] if error["loc"] else None
        is_unknown |= error["type"] == "extra_forbidden" or isinstance(cause, UnknownNameError)
        faults.setdefault(name, _message(record, values, error["type"], name, cause))
    lines = list(faults.values())
    text = lines[0] if len(lines) == 1 else "\n  ".join([f"{len(lines)} options are wrong:", *lines])
    return UnknownNameError(text) if is_unknown else OptionError(text)


def unknown_option(name: str, known: Iterable[str], place: str) -> str:
    """Return the message for a name that is no option of `place`, with the right name where it is known."""
    hint = f" {other_names()[name]}" if name in other_names() else nearest(name, known)
    return f"There is no option `{name}` ({place}).{hint}"


def _message(record: type[BaseModel], values: Mapping[str, Any], kind: str, name: Any, cause: Any) -> str:
    if cause is not None:
        return str(cause)
    if kind == "missing":
        return f"`{name}` is missing."
    if kind == "extra_forbidden":
        return unknown_option(name, record.model_fields, record.__name__)
    value, info = values[name], record.model_fields[name]
    if kind == "finite_number":
        return f"`{name}` must be finite, got {value!r}."
    if kind in _BOUND_FAULTS and not isinstance(value, tuple | list):
        return f"`{name}` must be {_described(info.annotation, info.metadata, bounds_only=True)}, got {value!r}."
    allowed = _described(info.annotation, info.metadata)
    return f"`{name}` must be {allowed}, got {value!r}.{_nearest_choice(info.annotation, value)}"


def _nearest_choice(annotation: Any, value: Any) -> str:
    """Return a hint where an option has named choices and the value looks like one of them."""
    parts = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    names = [name for part in parts if get_origin(part) is Literal for name in get_args(part)]
    return nearest(value, names) if isinstance(value, str) else ""


def _described(annotation: Any, metadata: Iterable[Any] = (), bounds_only: bool = False) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _described(parts[0], [*metadata, *parts[1:]], bounds_only)
    if origin in (Union, types.UnionType):
        return _any_of([_described(part, bounds_only=bounds_only) for part in parts])
    if origin is Literal:
        return _any_of([repr(part) for part in parts])
    if origin is tuple:
        return f"a list, each entry {_described(parts[0])}"
    if origin is Callable or annotation is Callable:
        return "a function"
    bounds = _bounds(annotation, metadata)
    if bounds and bounds_only:
        return bounds
    plain = _PLAIN.get(origin or annotation, f"a {getattr(annotation, '__name__', annotation)}")
    return f"{plain}{' of' if bounds.startswith('at') else ''} {bounds}".rstrip()


def _any_of(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _bounds(kind: Any, metadata: Iterable[Any]) -> str:
    words = []
    for bound in metadata:
        for name, word in _BOUNDS.items():
            if (limit := getattr(bound, name, None)) is not None:
                is_next = kind is int and name == "gt"
                words.append(f"at least {limit + 1}" if is_next else f"{word} {limit}")
    return " and ".join(words)
