"""Sphinx's settings. `make docs` builds; the pages of operators are made on the way (tools/docs)."""

import re
from typing import Any

import opendml

project = "opendml"
version = release = opendml.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
smartquotes = False
default_role = "code"
autodoc_typehints = "description"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = "opendml"
html_static_path = ["_static"]
html_css_files = ["opendml.css"]
html_show_copyright = False
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False


def as_plain_text(app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Escape marks of reStructuredText: docstrings are plain text, with code in backticks."""
    for index, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[index] = re.sub(r"[*|]|(?<=\w)_(?!\w)", r"\\\g<0>", line)


def setup(app: Any) -> None:
    """Connect the handlers; Sphinx calls this."""
    app.connect("autodoc-process-docstring", as_plain_text)
