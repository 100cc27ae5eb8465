"""Saved models: files with all that builds a model again, and nothing that is executed.

A file has a fixed head, a program in JSON, and the bytes of its constants (`container`). The program is what
a caller said: the calls that built a graph, or the descs of an operator or of a graph in DirectML's form
(`write`). Reading one says the same again (`read`), so that everything in it is checked as a caller's words
are: whatever a file holds, what is compiled is valid.
"""

from opendml.frontends.saved.read import load, loaded
from opendml.frontends.saved.write import saved_model, saved_operator, write_file

__all__ = ["load", "loaded", "saved_model", "saved_operator", "write_file"]
