"""Markdown of public names: signatures and docstrings, with one list entry per argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from pydantic import BaseModel

ENTRY = re.compile(r"([a-z_][a-z0-9_]*(?:, [a-z_][a-z0-9_]*)*): ")  # "row, u: (B,) int64" at the start of a line
PARAGRAPH = re.compile(r"Returns |Raises |Yields ")
SPECIAL = re.compile(r"[\\*<]|(?<!\w)_|_(?!\w)")  # an underscore within a word means nothing
WIDTH = 110  # of a signature in one line


class Plain(str):
    """An annotation that a signature shows without quotes."""

    __repr__ = str.__str__


def reference_text(name: str, *members: str) -> str:
    """Return the section of a class, a function or a module of errors.

    members: names of methods and properties to describe too; "*" for all that are public.
    """
    place, _, last = name.rpartition(".")
    if last == "errors":
        return errors_table(import_module(name))
    found = getattr(import_module(place), last)
    parts = [f"### {last}", *description(found, last)]
    for member in public_members(found) if members == ("*",) else members:
        attribute = inspect.getattr_static(found, member)
        parts += [f"#### {last}.{member}", *description(unwrapped(attribute), f"{last}.{member}")]
    return "\n\n".join(parts)


def public_members(found: type) -> Iterable[str]:
    """Return the names of documented methods and properties that a class defines."""
    return [name for name, member in vars(found).items() if not name.startswith("_") and unwrapped(member).__doc__
            and (inspect.isroutine(unwrapped(member)) or isinstance(member, property))]  # fmt: skip


def unwrapped(member: Any) -> Any:
    """Return the function of a class method or static method, and anything else as it is."""
    return member.__func__ if isinstance(member, classmethod | staticmethod) else member


def description(member: Any, name: str) -> Iterator[str]:
    """Yield the signature of what can be called, and the docstring."""
    if callable(member) and not (inspect.isclass(member) and issubclass(member, BaseModel)):
        yield f"```text\n{signature_text(member, name)}\n```"
    yield as_markdown(member.__doc__ or "")


def signature_text(member: Any, name: str) -> str:
    """Return a call with the parameters of a function or class, without quotes around annotations."""
    signature = inspect.signature(member)
    parameters = [
        parameter.replace(annotation=Plain(parameter.annotation)) if isinstance(parameter.annotation, str) else parameter
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    returned = signature.return_annotation
    result = f" -> {returned}" if isinstance(returned, str) and not inspect.isclass(member) else ""
    line = f"{name}{signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)}{result}"
    if len(line) <= WIDTH:
        return line
    marks = {inspect.Parameter.KEYWORD_ONLY: "    *,"}
    lines, shown = [f"{name}("], set[Any]()
    for parameter in parameters:
        if parameter.kind in marks and parameter.kind not in shown:
            lines.append(marks[parameter.kind])
            shown.add(parameter.kind)
        lines.append(f"    {parameter},")
    return "\n".join([*lines, f"){result}"])


def errors_table(module: Any) -> str:
    """Return a table of the errors of a module: name, built-in exception, meaning."""
    found = [each for each in vars(module).values() if inspect.isclass(each) and issubclass(each, Exception)]
    rows = [
        f"| `{each.__name__}` | {', '.join(f'`{base.__name__}`' for base in each.__bases__)} | {first_sentence(each)} |"
        for each in found
        if each.__module__ == module.__name__
    ]
    return "\n".join(["| error | is also | meaning |", "| --- | --- | --- |", *rows])


def first_sentence(member: Any) -> str:
    """Return the first paragraph of a docstring in one line."""
    return escaped(" ".join((inspect.getdoc(member) or "").split("\n\n")[0].split())).replace("|", "\\|")


def as_markdown(docstring: str) -> str:
    """Return a docstring with argument descriptions as a list, and other text escaped."""
    blocks: list[str] = []
    starts_block, is_entry = True, False
    for line in inspect.cleandoc(docstring).replace(". Raises ", ".\nRaises ").splitlines():
        text = line.strip()
        entry = ENTRY.match(text)
        content = f"- **{escaped(entry[1])}**: {escaped(text[entry.end() :])}" if entry else escaped(text)
        leaves_entry = is_entry and line == text  # the text of an entry is indented
        if not text:
            starts_block = True
        elif starts_block or entry or leaves_entry or PARAGRAPH.match(text):
            blocks.append(content)
            starts_block, is_entry = False, entry is not None
        else:
            blocks[-1] += f" {content}"
    return "\n\n".join(blocks)


def escaped(text: str) -> str:
    """Return text in which only backquotes have a meaning in Markdown: they become code."""
    pieces = text.split("`")
    return "".join(f"`{piece}`" if i % 2 else SPECIAL.sub(r"\\\g<0>", piece) for i, piece in enumerate(pieces) if piece)
