"""opendml against the libraries that are installed, side by side: `python -m benchmarks --help`."""
