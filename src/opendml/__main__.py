"""`python -m opendml` is the `opendml` command."""

from opendml.cli import main

main()
