"""Microsoft's `pydirectml`, for any machine: `import opendml.pydirectml as dml`.

`python -m opendml.pydirectml SCRIPT.py ARGS` runs a script that says `import pydirectml` (or `import
directml`) as it is. Type checkers read the stub that `tools.generate` writes.
"""

from __future__ import annotations

import typing

from opendml.frontends.pydirectml import (
    activations,
    devices,
    enumerations,
    functions,
    graphs,
    tensors,
)
from opendml.frontends.pydirectml.expressions import InPlace as Expression
from opendml.spec import enums

CLASSES: typing.Final = {
    activations: ["FusedActivation"],
    devices: ["Device", "TensorData"],
    graphs: ["Binding", "GraphBuilder", "Model"],
    tensors: ["Size2D", "TensorDesc", "TensorPolicy"],
    enumerations: ["TensorDataType", "OutputOptions", "PaddingMode", "OperatorType"],
    enums: [
        *("TensorFlags", "MatrixTransform", "RecurrentNetworkDirection", "ConvolutionMode"),
        *("ConvolutionDirection", "InterpolationMode", "ExecutionFlags"),
    ],
}
"""The modules of the classes that are not defined here."""

globals().update({name: getattr(module, name) for module, names in CLASSES.items() for name in names})


class Dimensions(list[int]):
    """A list of sizes. Any other list of integers is as good."""


# The members of enumerations are names of the module too. The last of those that collide stays.
for _name in ("TensorDataType", "PaddingMode", *CLASSES[enums], "OperatorType"):
    globals().update(globals()[_name].__members__)

__all__ = ["Dimensions", "Expression"]
__all__ += [name for names in CLASSES.values() for name in names]
__all__ += functions.names("pydirectml")


def __getattr__(name: str) -> typing.Any:
    return globals().setdefault(name, functions.public("pydirectml", name))


def __dir__() -> list[str]:
    return sorted(__all__)
