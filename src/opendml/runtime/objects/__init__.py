"""DirectML's object model: devices, operators, compiled operators, initializers, binding tables and
recorders."""
