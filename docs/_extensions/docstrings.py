"""Convert docstrings to reStructuredText: one list entry per argument, names in backquotes as code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sphinx.application import Sphinx

ENTRY = re.compile(r"([a-z_][a-z0-9_]*(?:, [a-z_][a-z0-9_]*)*): ")  # "row, u: (B,) int64" at the start of a line
PARAGRAPH = re.compile(r"Returns |Raises |Yields ")


def as_restructured_text(docstring: Sequence[str]) -> list[str]:
    """Return the lines of a docstring with argument descriptions as a list, and other text escaped."""
    blocks: list[str] = []
    starts_block = True
    text = "\n".join(docstring).replace(". Raises ", ".\nRaises ")
    for line in map(str.strip, text.splitlines()):
        entry = ENTRY.match(line)
        content = f"- **{entry[1]}**: {escaped(line[entry.end() :])}" if entry else escaped(line)
        if not line:
            starts_block = True
        elif starts_block or entry or PARAGRAPH.match(line):
            blocks.append(content)
            starts_block = False
        else:
            blocks[-1] += f" {content}"
    return [line for block in blocks for line in (block, "")]


def escaped(text: str) -> str:
    """Return text in which only backquotes have a meaning for docutils: they become code."""
    pieces = text.split("`")
    return "".join(
        f"``{piece}``" if i % 2 else re.sub(r"([\\*|_])", r"\\\1", piece) for i, piece in enumerate(pieces) if piece
    )


def _process_docstring(app: Sphinx, what: str, name: str, member: Any, options: Any, lines: list[str]) -> None:
    if what != "module":
        lines[:] = as_restructured_text(lines)


def _process_signature(
    app: Sphinx, what: str, name: str, member: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Return the signature with plain names of type aliases. Autodoc wraps them where they are part of a union."""
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returned))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("autodoc-process-docstring", _process_docstring)
    app.connect("autodoc-process-signature", _process_signature)
    return {"parallel_read_safe": True}
