"""Write the parts of the pages that are made from the package and from the measured results.

    python docs/make_tables.py

A page holds such a part between two comments, `<!-- made by docs/make_tables.py: KIND ARGUMENTS -->` and `<!-- end -->`.
The drawings are files of docs/_static/drawings.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_tables"), str(DOCS.parent / "benchmarks")]

from closed_tables import closed_text  # noqa: E402  (after the path is set)
from drawings import drawings  # noqa: E402
from reference import reference_text  # noqa: E402
from result_tables import headline_table, results_table  # noqa: E402
from tables import commands_text, notebook_text, options_text, presets_text, recipes_text  # noqa: E402

KINDS: dict[str, Callable[..., str]] = {
    "commands": commands_text,
    "options": options_text,
    "recipes": recipes_text,
    "presets": presets_text,
    "reference": reference_text,
    "headline": headline_table,
    "results": results_table,
    "closed": closed_text,
    "notebook": notebook_text,
}
PART = re.compile(r"(<!-- made by docs/make_tables\.py: ([^\n]*) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Write every page and drawing that changes, and print its name."""
    for path, text in made_files().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(DOCS.parent))


def made_files() -> dict[Path, str]:
    """Return what every page with made parts and every drawing should contain."""
    pages = {path: path.read_text(encoding="utf-8") for path in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]}
    made = {path: PART.sub(_replaced, text) for path, text in pages.items() if PART.search(text)}
    return made | {DOCS / "_static" / "drawings" / f"{name}.svg": svg for name, svg in drawings().items()}


def _replaced(part: re.Match[str]) -> str:
    kind, *arguments = part[2].split()
    return f"{part[1]}\n{KINDS[kind](*arguments).strip()}\n\n{part[3]}"


if __name__ == "__main__":
    main()
