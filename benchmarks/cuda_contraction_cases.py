"""Cases of `cuda_contractions`: the calls of public operators in `tools.contraction_cases`.

python -m benchmarks.cuda_contraction_cases [--device sm_80 | sm_90] [WORD ...]

prints their kernels, the bytes between these, and the units that multiply. The device need not be present.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opendml.across_forks import cached_property
from opendml.program.program import Program
from opendml.spec.enums import ConvolutionDirection
from tools import contraction_cases
from tools.kernel_table import kernel_summary
from tools.machines import DEVICES
from tools.operator_case import Case as Call

TYPES = ("FLOAT32", "FLOAT16", "INT8")
OPERATIONS = {
    80: {"FLOAT32": 128, "FLOAT16": 2048, "INT8": 4096},
    90: {"FLOAT32": 256, "FLOAT16": 4096, "INT8": 8192},
    100: {"FLOAT32": 256, "FLOAT16": 8192, "INT8": 16384},
}
"""Operations of a multiprocessor in a cycle, by compute capability. FLOAT16 and INT8 use tensor cores."""


@dataclass(frozen=True, eq=False)
class Case:
    """A call of a public operator over random numbers."""

    call: Call

    @property
    def name(self) -> str:
        """Return the type, the operator, and what it computes."""
        return f"{self.type} {self.call.form.operator} {self.call.form.name}"

    @property
    def type(self) -> str:
        """Return the type of the first tensor."""
        return self.call.type

    @cached_property
    def program(self) -> Program:
        """Return the program that a device compiles for the call."""
        return self.call.program

    @property
    def operations(self) -> float:
        """Return the number of operations; a multiply-add counts as two."""
        return 2.0 * _products(self.call.desc)

    @property
    def moved(self) -> int:
        """Return the bytes of inputs and outputs."""
        layouts = (*self.program.inputs, *self.program.outputs)
        return sum(layout.element_count * layout.type.bytes for layout in layouts)


def cases() -> Iterator[Case]:
    """Yield all cases, in the types that GPUs have units for."""
    forms = [*contraction_cases.contraction_forms(), *contraction_cases.network_convolutions()]
    for type in TYPES:
        for form in forms:
            if type in form.types_of_first:
                yield Case(form.case(type))


def _products(desc: Any) -> int:
    """Return how many products the operator adds up."""
    results: Sequence[int] = desc.output_tensor.sizes
    if "ATTENTION" in desc.operator:
        present = desc.output_present_key_tensor
        keys: int = present.sizes[2] if present is not None else desc.key_tensor.sizes[1]
        return 2 * math.prod(results) * keys
    if "CONVOLUTION" in desc.operator:
        if getattr(desc, "direction", None) is ConvolutionDirection.BACKWARD:
            results = desc.input_tensor.sizes
        window: Sequence[int] = desc.filter_tensor.sizes[1:]
        return math.prod(results) * math.prod(window)
    depth: int = desc.b_tensor.sizes[-1 if getattr(desc, "trans_b", False) else -2]
    return math.prod(results) * depth


def main(arguments: Sequence[str]) -> int:
    """Print the kernels of the cases on a device."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cuda_contraction_cases",
        description="Prints the kernels of the cases of benchmarks.cuda_contractions.",
    )
    parser.add_argument("words", nargs="*", help="only cases whose name has all of them")
    parser.add_argument("--device", choices=sorted(DEVICES), default="sm_90")
    options = parser.parse_args(arguments)
    for case in cases():
        if all(word in case.name for word in options.words):
            print(f"{case.name}: {kernel_summary(case.program, options.device).text}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
