"""JSON models of Microsoft's DxDispatch tool: resources, DirectML operators and commands in one file.

The format is that of the guide and the parser in DxDispatch (microsoft/DirectML, folder DxDispatch), with
these decisions: unknown and repeated fields are errors; counts that only repeat the length of an array may be
left out; pictures may be NHWC; HLSL needs Direct3D.

    model = dxdispatch.load(Path("model.json"))
    for event in dxdispatch.prepare(model, dml.Device("cpu")).run():
        print(event)
"""

from opendml.frontends.dxdispatch.execution import Dispatched, PreparedModel, Printed, Written, prepare
from opendml.frontends.dxdispatch.graphs import graph_of, model_of_graph
from opendml.frontends.dxdispatch.model import DispatchModel, Folders
from opendml.frontends.dxdispatch.parser import examine, load, parse_model, parse_operators, read
from opendml.frontends.dxdispatch.timing import Repetition

__all__ = [
    "DispatchModel",
    "Dispatched",
    "Folders",
    "PreparedModel",
    "Printed",
    "Repetition",
    "Written",
    "examine",
    "graph_of",
    "load",
    "model_of_graph",
    "parse_model",
    "parse_operators",
    "prepare",
    "read",
]
