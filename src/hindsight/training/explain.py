"""What each option of a run means and where its value comes from, for those who read the run later."""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
from dataclasses import fields
from typing import Any

from ..options import Settings

PARTS = ("agent", "hindsight", "collecting", "training")  # of Settings.records(), in their order


def explain(settings: Settings) -> dict[str, dict[str, Any]]:
    """Of each option: its part, its meaning, its default, and what the recipe says, where it says anything."""
    explained = {}
    for part, record in zip(PARTS, settings.records(), strict=True):
        meanings = field_comments(type(record))
        for option in fields(record):
            facts = {"part": part, "meaning": meanings.get(option.name, ""), "default": option.default}
            if option.name in settings.from_recipe:
                facts["recipe"] = settings.from_recipe[option.name]
            explained[option.name] = facts
    return explained


def field_comments(record: type) -> dict[str, str]:
    """The comment behind each field of a dataclass, its own or inherited; none where the source is not at hand."""
    comments: dict[str, str] = {}
    for kind in reversed(record.__mro__[:-1]):
        try:
            comments |= _comments_in(inspect.getsource(kind))
        except OSError:  # a package without its sources still trains
            continue
    return comments


def _comments_in(source: str) -> dict[str, str]:
    """name: comment, for every field of a dataclass that has one behind it, on whichever of its lines."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    (kind,) = ast.parse(source).body
    return {
        field.target.id: comments[line]
        for field in getattr(kind, "body", ())
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        for line in range(field.lineno, (field.end_lineno or field.lineno) + 1)
        if line in comments
    }
