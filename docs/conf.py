"""Sphinx's settings. `make docs` builds; the pages of operators are made on the way (tools/docs)."""

import opendml

project = "opendml"
version = release = opendml.__version__

extensions = ["myst_parser"]
myst_heading_anchors = 3
smartquotes = False

html_theme = "furo"
html_title = "opendml"
html_show_copyright = False
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
