"""DirectML's rules: the operators as data, their desc classes, and the validator that reads both."""
