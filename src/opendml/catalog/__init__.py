"""The operator reference as content without a format, which `opendml ops` and the documentation print."""
