"""Immediate functions: a call as its caller made it, what it means as a description, whether it may write its
outputs, and the plans that are kept for later calls of the same form. Calls on symbolic tensors end in
`graphs`; the functions themselves are generated (`opendml.functions`)."""
