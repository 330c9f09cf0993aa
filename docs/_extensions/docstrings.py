"""The docstrings of this package are plain English; this makes them reStructuredText that shows what they say."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

from sphinx.application import Sphinx


def names_of(thing: Any) -> set[str]:
    """The parameters, fields and attributes that a docstring may tell of."""
    names: set[str] = set()
    for call in (thing, getattr(thing, "__init__", None)):
        try:
            names |= set(inspect.signature(call).parameters)
        except (TypeError, ValueError):
            continue
    if dataclasses.is_dataclass(thing):
        names |= {field.name for field in dataclasses.fields(thing)}
    return names | set(dir(thing) if inspect.isclass(thing) else ())


def as_restructured_text(text: str, names: set[str]) -> list[str]:
    """Paragraphs as they are, but `code` as code; every "name: what it is", and what is raised, on lines of their own."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        for piece in re.split(r"(?<=[.)]) (?=Raises |Returns )", " ".join(paragraph.split())):
            for part in _entries(piece, names):
                lines += [part, ""]
    return lines


def _entries(paragraph: str, names: set[str]) -> list[str]:
    """The paragraph, and behind it as a list what it says of single names, in its order."""
    start = re.compile(r"(?:(?<=^)|(?<=[.;)] ))(\w+(?:, \w+)*): ")
    found = [match for match in start.finditer(paragraph) if set(match[1].split(", ")) <= names]
    ends = [*(match.start() for match in found[1:]), len(paragraph)]
    before = paragraph[: found[0].start()] if found else paragraph
    entries = [
        f"- **{match[1]}**: {_escaped(paragraph[match.end() : end].strip())}"
        for match, end in zip(found, ends, strict=False)
    ]
    return ([_escaped(before.strip())] if before.strip() else []) + entries


def _escaped(text: str) -> str:
    """What stands between backquotes is code; nothing else means anything to docutils."""
    pieces = text.split("`")
    return "".join(
        f"``{piece}``" if i % 2 else re.sub(r"([\\*|_])", r"\\\1", piece) for i, piece in enumerate(pieces) if piece
    )


def _process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if what != "module":
        lines[:] = as_restructured_text("\n".join(lines), names_of(thing))


def _process_signature(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """The names of aliases as they are, which autodoc wraps where they stand in a union."""
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returned))


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-process-signature", _process_signature)
    return {"parallel_read_safe": True}
