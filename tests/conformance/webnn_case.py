"""WebNN's conformance cases as they stand in their files: one operator on literal tensors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from opendml import TensorDataType, TensorDesc
from opendml.runtime.memory.host_array import Array
from opendml.spec.tensor_desc import packed_strides


@dataclass(frozen=True)
class WebnnTensor:
    """A packed tensor, and the views of it that DirectML takes.

    WebNN's tensors may have no dimension; here `sizes` has then one, of size 1.
    """

    data_type: TensorDataType
    sizes: tuple[int, ...]
    data: Any

    @property
    def numpy_type(self) -> np.dtype[Any]:
        """NumPy's type of the elements."""
        return np.dtype(self.data_type.name.lower())

    @property
    def array(self) -> Array:
        """The elements, in one dimension. A number by itself stands for all of them."""
        if not isinstance(self.data, list):
            return np.full(prod(self.sizes), number(self.data, self.data_type), self.numpy_type)
        return np.array([number(each, self.data_type) for each in self.data], self.numpy_type)

    def packed(self, sizes: Sequence[int] | None = None) -> TensorDesc:
        """The tensor, or its elements in other sizes."""
        return TensorDesc(self.data_type, self.sizes if sizes is None else sizes)

    def broadcast(self, sizes: Sequence[int]) -> TensorDesc:
        """The tensor repeated to `sizes`, aligned at the last dimension, as WebNN does by itself."""
        own = (1,) * (len(sizes) - len(self.sizes)) + self.sizes
        if own == tuple(sizes):
            return self.packed()
        pairs = zip(own, packed_strides(own), strict=True)
        return TensorDesc(self.data_type, sizes, [0 if size == 1 else stride for size, stride in pairs])

    def permuted(self, order: Sequence[int]) -> TensorDesc:
        """The tensor with its dimensions in another order."""
        strides = packed_strides(self.sizes)
        return TensorDesc(self.data_type, [self.sizes[i] for i in order], [strides[i] for i in order])


@dataclass(frozen=True)
class WebnnCase:
    """One operator of WebNN with its arguments and the expected outputs."""

    name: str
    operator: str
    arguments: dict[str, Any]
    tensors: dict[str, WebnnTensor]
    """The inputs by their names in the case, which arguments give."""
    outputs: tuple[WebnnTensor, ...]

    def option(self, name: str, default: Any = None) -> Any:
        """An argument that is no tensor."""
        return self.arguments.get(name, default)

    def input(self, argument: str = "input") -> WebnnTensor:
        """The tensor that is given for an argument."""
        return self.tensors[self.arguments[argument]]

    @property
    def output(self) -> WebnnTensor:
        """The only output."""
        (tensor,) = self.outputs
        return tensor


def read_cases(path: Path) -> Iterator[WebnnCase]:
    """The cases of one file."""
    for case in json.loads(path.read_text(encoding="utf-8"))["tests"]:
        graph = case["graph"]
        (operator,) = graph["operators"]
        arguments: dict[str, Any] = {}
        for argument in operator["arguments"]:
            arguments |= argument.get("options", argument)
        names = operator["outputs"]
        outputs = [graph["expectedOutputs"][name] for name in ([names] if isinstance(names, str) else names)]
        tensors = {name: _tensor(facts) for name, facts in graph["inputs"].items()}
        yield WebnnCase(case["name"], operator["name"], arguments, tensors, tuple(map(_tensor, outputs)))


def _tensor(facts: dict[str, Any]) -> WebnnTensor:
    descriptor = facts["descriptor"]
    sizes = tuple(descriptor["shape"]) or (1,)
    return WebnnTensor(TensorDataType[descriptor["dataType"].upper()], sizes, facts["data"])


def number(value: int | float | str, data_type: TensorDataType) -> int | float:
    """A number of a case: text where JSON has none for it, such as "-Infinity" and, with JavaScript's suffix
    of big integers, "9007199254740993n"."""
    if data_type.name.startswith("FLOAT"):
        return float(value)
    return int(value.removesuffix("n")) if isinstance(value, str) else int(value)
