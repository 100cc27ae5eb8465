"""`directml`, the maintained fork of PyDirectML, for any machine: `import opendml.directml as dml`.

Programs of its interface now (`Graph`, `Buffer`, `CompiledOperator`) run, and of the one before
(`GraphBuilder`, `Binding`, `Device.compute`). `python -m opendml.pydirectml SCRIPT.py ARGS` runs a script
that says `import directml` as it is. Type checkers read the stub that `tools.generate` writes.
"""

from __future__ import annotations

import typing

from opendml import __version__ as __version__
from opendml.frontends.pydirectml import (
    activations,
    devices,
    enumerations,
    expressions,
    functions,
    graphs,
    tensors,
)
from opendml.frontends.pydirectml.enumerations import OutputOptions as GRUOutputOptions
from opendml.spec import enums

CLASSES: typing.Final = {
    activations: ["FusedActivation"],
    devices: ["Buffer", "Device"],
    enumerations: ["OperatorType", "OutputOptions", "PaddingMode", "QuantizationType", "TensorDataType"],
    expressions: ["Expression"],
    graphs: ["CompiledOperator", "Graph", "Model"],
    tensors: ["Size2D", "TensorDesc", "TensorPolicy"],
    enums: [
        *("AxisDirection", "ConvolutionDirection", "ConvolutionMode", "DepthSpaceOrder", "ExecutionFlags"),
        *("InterpolationMode", "IsInfinityMode", "MatrixTransform", "RandomGeneratorType"),
        *("RecurrentNetworkDirection", "ReduceFunction", "RoundingMode", "TensorFlags"),
    ],
}
"""The modules of the classes that are not defined here."""

globals().update({name: getattr(module, name) for module, names in CLASSES.items() for name in names})


class TensorData(devices.TensorData):
    __doc__ = devices.TensorData.__doc__

    def __new__(cls, data: typing.Any = None) -> TensorData:
        raise TypeError("directml.TensorData: no constructor; Device.compute and dispatch make it")


class Binding(graphs.Binding):
    __doc__ = graphs.Binding.__doc__
    _is_strict = True


class GraphBuilder(graphs.GraphBuilder):
    __doc__ = graphs.GraphBuilder.__doc__
    data = TensorData
    keeps_weights = True


__all__ = ["Binding", "GRUOutputOptions", "GraphBuilder", "TensorData"]
__all__ += [name for names in CLASSES.values() for name in names]
__all__ += functions.names("directml")


def __getattr__(name: str) -> typing.Any:
    return globals().setdefault(name, functions.public("directml", name))


def __dir__() -> list[str]:
    return sorted(__all__)
