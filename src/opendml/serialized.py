"""Serialized DirectML graphs: `dml.serialized.load("Partition_0.bin")(x=x)`."""

from opendml.frontends.serialized.calls import graph_of_model
from opendml.frontends.serialized.graph import SerializedGraph, SerializedNode
from opendml.frontends.serialized.graph import read_graph as read
from opendml.frontends.serialized.graph import write_graph as write
from opendml.frontends.serialized.model import SerializedModel, load

__all__ = ["SerializedGraph", "SerializedModel", "SerializedNode", "graph_of_model", "load", "read", "write"]
