"""The objects that callers hold and run.

`objects` is DirectML's object model, `graphs` are operators that are compiled together, `calls` are immediate
functions, `memory` is that of the caller, `saved` are files, and `explain` measures. A device is a backend
(`opendml.targets.backend`); no module imports a target.
"""
