"""`python -m opendml` is the `opendml` command."""

from opendml.cli import main

main(prog_name="opendml")
