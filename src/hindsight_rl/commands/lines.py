"""The lines that commands print: wrapped at words in a terminal, whole in a log or a pipe."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import IO

INDENT = 4  # of the lines that go on with a wrapped line


def say(line: str, file: IO[str] | None = None) -> None:
    """Print a line to stdout or a file. A full disk, or a reader that went away, does not stop a run."""
    file = file or sys.stdout
    try:
        print(wrapped(line, shutil.get_terminal_size().columns) if file.isatty() else line, file=file, flush=True)
    except OSError:
        return


def say_command(words: str) -> None:
    """Print a command of `hindsight-rl` for the user to copy. It stays one line in a terminal too."""
    try:
        print(f"  hindsight-rl {words}", flush=True)
    except OSError:
        return


def wrapped(text: str, width: int) -> str:
    """Return text in lines of at most `width` characters. Lines break at spaces only: a longer word stays whole."""
    return "\n".join(_wrapped_line(line, width) for line in text.splitlines())


def _wrapped_line(line: str, width: int) -> str:
    start = line[: len(line) - len(line.lstrip())]
    rest = start + " " * INDENT
    return textwrap.fill(
        line.lstrip(),
        width,
        initial_indent=start,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
