"""The operator reference as content without a form, which `opendml ops` and the documentation print."""
