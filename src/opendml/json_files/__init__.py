"""JSON of files: read with exact positions, and checked with the path of each value."""
