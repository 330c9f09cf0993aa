"""The base class of all option records: frozen pydantic models with plain error messages.

pydantic was chosen over attrs. It imports in 0.12 s, attrs in 0.03 s (`python -X importtime`, one core). Beside torch,
2 s, that does not matter, and `hindsight-rl --help` imports neither. In return pydantic checks bounds, choices and the
entries of tuples by declaration, and reports every fault at once. attrs stops at the first.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from annotated_types import Ge, Gt, Le, MaxLen
from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from ..errors import OptionError, UnknownNameError, nearest

LONGEST_REPR = 250  # characters
Fraction = Annotated[float, Ge(0), Le(1)]
Rate = Annotated[float, Gt(0), Le(1)]
LONGEST_TEXT = 100_000  # characters; a file of somebody else may have more
MOST_DOTS = 2_000  # in a line of TOML: tomllib takes time quadratic in the parts of a key such as a.b.c
_LONGEST = 200  # characters of a value in a message
_WORDS = {
    "Input should be": "must be",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "Tuple should have": "must have",
}

# Where a number decides how much is allocated or repeated, it has an upper bound. Without one, a typing error or a file of
# somebody else takes all memory, or never ends. Each bound has its reason.
Steps = Annotated[int, Ge(0), Le(10**12)]  # a simulator that takes a microsecond per step needs twelve days for so many
PositiveSteps = Annotated[int, Ge(1), Le(10**12)]
MOST_ENTRIES = 10_000  # of a list; a task with more columns that are named one by one is not known
Texts = Annotated[tuple[str, ...], MaxLen(MOST_ENTRIES)]
Columns = Annotated[tuple[Annotated[int, Ge(0)], ...], MaxLen(MOST_ENTRIES)]
Numbers = Annotated[tuple[float, ...], MaxLen(MOST_ENTRIES)]


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
        return type(self)(**{**dict(self), **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON, from which an equal record can be made."""
        return self.model_dump()

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Yield the options that differ from their default."""
        fields = type(self).model_fields
        yield from ((name, value) for name, value in self if value != fields[name].default)

    def __repr__(self) -> str:
        return shortened(super().__repr__())


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


@cache
def option_fields(record: type[OptionRecord]) -> tuple[OptionField, ...]:
    """Return every option of a record class, in the order of declaration."""
    fields = []
    for name, info in record.model_fields.items():
        owner = _first_declaration(record, name)
        description = info.description or owner.model_fields[name].description or ""
        group = str(owner.model_config.get("title", ""))
        fields.append(OptionField(name, info.annotation, info.default, description, group))
    return tuple(fields)


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


def parse_toml(text: str) -> dict[str, Any]:
    """Return what TOML holds. Raises ValueError for anything else, and for what would take too long."""
    if max((line.count(".") for line in text.splitlines()), default=0) > MOST_DOTS:
        raise ValueError(f"a line has more than {MOST_DOTS:,} dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


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
    """Return the message for a name that is no option of `place`, with similar names."""
    hint = nearest(name, known)
    return f"There is no option `{name}` ({place}).{hint} Names of other libraries: docs/migrating.md."


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
