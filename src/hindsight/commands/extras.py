"""The extra of this package that a command needs, if a Python package cannot be imported."""

from __future__ import annotations

from ..errors import MissingExtraError
from .doctor import install_line

OF_TRAIN = frozenset({"torch", "rich", "PIL", "jinja2", "plotly", "matplotlib"})  # modules that the extra installs
ONLY_REPORT = frozenset({"report", "compare"})  # commands for which the smaller extra `report` is enough


def missing_extra(command: str, problem: ModuleNotFoundError) -> MissingExtraError:
    """Return the error that names the extra that a command needs. Raises `problem` again if no extra has the module."""
    package = (problem.name or "").partition(".")[0]
    if package not in OF_TRAIN:
        raise problem
    line = install_line("report" if command in ONLY_REPORT else "train")
    return MissingExtraError(f"`{command}` needs {package}, which is not installed: {line}")
