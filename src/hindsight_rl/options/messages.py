"""Turn pydantic's errors into OptionErrors: which option, what it takes, what was given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from ..errors import OptionError, UnknownNameError, nearest
from .other_names import other_names

_WORDS = {
    "Input should be": "must be",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "Tuple should have": "must have",
}
_LONGEST = 200  # characters of a value in a message


def option_error(record: type[BaseModel], values: Mapping[str, Any], problem: ValidationError) -> OptionError:
    """Return an OptionError, or an UnknownNameError, that lists every fault of `values`.

    record: the class that refused them.
    """
    faults: dict[str, str] = {}
    is_unknown = False
    for error in problem.errors():
        cause = error.get("ctx", {}).get("error")
        is_unknown |= error["type"] == "extra_forbidden" or isinstance(cause, UnknownNameError)
        name = next((str(part) for part in error["loc"]), "")
        if name not in faults:
            faults[name] = _message(record, name, values, error["type"], error["msg"], cause)
        elif cause is None:  # of a union, each type has an error
            faults[name] += f" Or it {_plain(error['msg'])}."
    lines = list(faults.values())
    text = lines[0] if len(lines) == 1 else "\n  ".join([f"{len(lines)} options are wrong:", *lines])
    return UnknownNameError(text) if is_unknown else OptionError(text)


def unknown_option(name: str, known: Iterable[str], place: str) -> str:
    """Return the message for a name that is no option of `place`, with the right name where it is known."""
    hint = f" {other_names()[name]}" if name in other_names() else nearest(name, known)
    return f"There is no option `{name}` ({place}).{hint}"


def _message(record: type[BaseModel], name: str, values: Mapping[str, Any], kind: str, text: str, cause: Any) -> str:
    if cause is not None:
        return str(cause)
    if kind == "extra_forbidden":
        return unknown_option(name, record.model_fields, record.__name__)
    if kind == "missing":
        return f"`{name}` is missing."
    given = repr(values[name])
    return f"`{name}` {_plain(text)}, got {given if len(given) <= _LONGEST else f'{given[:_LONGEST]}...'}."


def _plain(text: str) -> str:
    for words, ours in _WORDS.items():
        text = text.replace(words, ours)
    return text
