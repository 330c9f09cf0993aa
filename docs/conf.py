"""Configuration of the documentation: `sphinx-build -W docs build/docs` writes build/docs/index.html."""

from typing import Any

import hindsight_rl

project = "hindsight-rl"
copyright = "The hindsight-rl authors, MIT licence"
author = "The hindsight-rl authors"
release = hindsight_rl.__version__

extensions = ["myst_parser"]
exclude_patterns = ["_tables"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"hindsight-rl {release}"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style, pygments_dark_style = "friendly", "native"

NAVIGATION = {  # page -> caption -> pages below it; here, since GitHub would show a directive as text
    "index": {
        "Begin": ["tutorial", "relabelling", "task-structure", "glossary"],
        "How to": [
            "how-to/ten-minutes",
            "how-to/own-environment",
            "how-to/grid-or-puzzle",
            "how-to/describe-your-task",
            "how-to/read-what-was-found",
            "how-to/my-run-fails",
            "how-to/public-questions",
            "how-to/tuning",
            "how-to/compare-with-sb3",
            "how-to/images",
            "how-to/gpu",
            "how-to/demonstrations",
            "how-to/own-learner",
            "how-to/pytorch-learner",
            "how-to/jax-learner",
            "how-to/own-strategy",
            "how-to/new-agent",
            "how-to/callbacks",
            "how-to/resume",
            "how-to/benchmark",
            "cluster",
            "migrating",
        ],
        "Look up": [
            "agents/index",
            "options",
            "recipes",
            "commands",
            "metrics",
            "files",
            "reference",
            "results",
            "performance",
        ],
        "Develop": ["source-layout", "testing", "reliability", "notebook"],
    },
    "agents/index": {"Agents": ["dqn", "qrdqn", "ddpg", "td3", "sac", "tqc"]},
}


def add_navigation(app: Any, page: str, source: list[str]) -> None:
    """Add the table of contents to the pages that have pages below them."""
    for caption, pages in NAVIGATION.get(page, {}).items():
        source[0] += "\n".join(("\n```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```\n"))


def setup(app: Any) -> None:
    """Connect to Sphinx."""
    app.connect("source-read", add_navigation)
