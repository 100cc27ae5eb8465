"""DirectML's object model: devices, operators, compiled operators, initializers, bindings and their tables,
command recorders; and what they hand out to be dispatched. Graphs before they are compiled, and models, live
in `graphs`; calls without a description, in `calls`; what is asked of the caller's memory, in `memory`."""
