"""The operator reference as content without a form: the `opendml ops` command and the documentation print it."""
