"""The extras of this package: how to install one, and which one a command needs."""

from __future__ import annotations

import json
import shlex
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse

from .errors import MissingExtraError

DISTRIBUTION = "hindsight-rl"
OF_TRAIN = frozenset({"torch", "rich", "PIL", "jinja2", "plotly", "matplotlib"})  # modules that this extra installs
ONLY_REPORT = frozenset({"report", "compare"})  # commands for which the smaller extra `report` is enough


def install_line(extra: str) -> str:
    """Return the command that installs an extra ("": the package alone).

    It installs from the checkout or wheel that was installed, or else from the index.
    """
    try:
        url = json.loads(metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "{}").get("url", "")
    except metadata.PackageNotFoundError:
        url = ""
    place = Path(unquote(urlparse(url).path)) if url.startswith("file:") else None
    constraints = place / "constraints.txt" if place else None
    options = f"-c {shlex.quote(str(constraints))} " if constraints and constraints.exists() else ""
    return f'pip install {options}"{place or DISTRIBUTION}{f"[{extra}]" if extra else ""}"'


def missing_extra(command: str, problem: ModuleNotFoundError) -> MissingExtraError:
    """Return the error that names the extra that a command needs. Raises `problem` again if no extra has the module."""
    package = (problem.name or "").partition(".")[0]
    if package not in OF_TRAIN:
        raise problem
    line = install_line("report" if command in ONLY_REPORT else "train")
    return MissingExtraError(f"`{command}` needs {package}, which is not installed: {line}")
