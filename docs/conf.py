"""Configuration of the documentation: `sphinx-build -W docs build/docs` writes build/docs/index.html."""

import sys
from pathlib import Path

import hindsight_rl

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "hindsight-rl"
copyright = "The hindsight-rl authors, MIT licence"
author = "The hindsight-rl authors"
release = hindsight_rl.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "drawings", "generated", "docstrings"]
exclude_patterns = ["_extensions"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    name: name for name in ("Array", "Callback", "Environment", "EnvSource", "RewardFunction", "Strategy")
}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"hindsight-rl {release}"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style, pygments_dark_style = "friendly", "native"
