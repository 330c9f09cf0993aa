"""The base class of all option records: frozen pydantic models with plain error messages.

pydantic was chosen over attrs. It imports in 0.12 s, attrs in 0.03 s (`python -X importtime`, one core). Beside torch,
2 s, that does not matter, and `hindsight-rl --help` imports neither. In return pydantic checks bounds, choices and the
entries of tuples by declaration, and reports every fault at once. attrs stops at the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from annotated_types import Ge, Gt, Le, MaxLen
from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from ..errors import OptionError
from .messages import option_error
from .toml import parse_toml

LONGEST_REPR = 250  # characters
Fraction = Annotated[float, Ge(0), Le(1)]
Rate = Annotated[float, Gt(0), Le(1)]
FUNCTION = "function "  # stands before the name of a function, which is what files hold of it
LONGEST_TEXT = 100_000  # characters; a file of somebody else may have more


class OptionRecord(BaseModel):
    """Frozen record of validated options.

    Types are strict, but a list becomes a tuple, an integer a float where the option needs one, and a NumPy number a plain
    one. Unknown names, NaN and infinity are refused. Raises OptionError, or UnknownNameError for an unknown name.
    """

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        str_max_length=LONGEST_TEXT,
        defer_build=True,
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as problem:
            raise option_error(type(self), values, problem) from None

    @field_validator("*", mode="before")
    @classmethod
    def _plain_value(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        limits = cls.model_fields[str(info.field_name)].metadata
        most = next((limit.max_length for limit in limits if isinstance(limit, MaxLen)), None)
        if most is not None and isinstance(value, list | tuple) and len(value) > most:  # pydantic would look at each item
            raise OptionError(f"`{info.field_name}` must have at most {most} items, got {len(value)}.")
        return tuple(value) if isinstance(value, list) else value

    def replace(self, **changes: Any) -> Self:
        """Return a validated copy with some options changed."""
        return type(self)(**{**self._values(), **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON, from which an equal record can be made."""
        return {name: _as_plain(value) for name, value in self._values().items()}

    def __repr__(self) -> str:
        """Return the options that differ from their default."""
        defaults = {name: info.default for name, info in type(self).model_fields.items()}
        changed = [f"{name}={value!r}" for name, value in self._values().items() if value != defaults[name]]
        return shortened(f"{type(self).__name__}({', '.join(changed)})")

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in type(self).model_fields}


def shortened(text: str) -> str:
    """Return a text that may be long as the last line of a notebook's cell, cut off after LONGEST_REPR characters."""
    return text if len(text) <= LONGEST_REPR else f"{text[: LONGEST_REPR - 4]}...)"


class OptionField(NamedTuple):
    """One option, for the command line, the documents and the report.

    type: the annotation. group: the title of the class that declares it.
    """

    name: str
    type: Any
    default: Any
    description: str
    group: str


def option_fields(record: type[OptionRecord]) -> Iterator[OptionField]:
    """Yield every option of a record class, in the order of declaration."""
    for name, info in record.model_fields.items():
        owner = _first_declaration(record, name)
        description = info.description or owner.model_fields[name].description or ""
        group = str(owner.model_config.get("title", ""))
        yield OptionField(name, info.annotation, info.default, description, group)


def named_values(option: str, entries: Sequence[str]) -> dict[str, Any]:
    """Return the values of entries such as "n_bits=30" by their names. Values are written as in TOML.

    option: the name of the entries in errors. Raises OptionError for an entry of another form and for a repeated name.
    """
    values: dict[str, Any] = {}
    for entry in entries:
        name = entry.partition("=")[0].strip()
        try:
            read = parse_toml(entry)
        except ValueError:
            read = {}
        if list(read) != [name]:
            raise OptionError(
                f"An entry of `{option}` must be name=value with a value in TOML: true, 30, 0.5, [1, 2], {{ key = 1 }} or "
                f'"text", got {entry!r}. A shell removes quotes: write \'{name}="text"\'.'
            )
        if name in values:
            raise OptionError(f"`{option}` must name {name!r} once, got it twice.")
        values |= read
    return values


def _first_declaration(record: type[OptionRecord], name: str) -> type[OptionRecord]:
    """Return the most general class that has the option: a subclass may change its default alone."""
    kinds = [kind for kind in record.__mro__ if issubclass(kind, OptionRecord) and name in kind.model_fields]
    return kinds[-1]


def _as_plain(value: Any) -> Any:
    """Return an option's value as JSON has it: a record and a function become text."""
    if isinstance(value, OptionRecord):
        return str(value)
    if not callable(value):
        return value
    named = value if hasattr(value, "__qualname__") else type(value)  # a partial or an object with __call__ has no name
    return f"{FUNCTION}{named.__module__}.{named.__qualname__}"
