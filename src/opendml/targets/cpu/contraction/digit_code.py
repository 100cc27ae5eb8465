"""Contractions of few rows with a narrow operand, multiplied as integers."""

from __future__ import annotations

from opendml.targets.cpu.contraction.code import ContractionCode
from opendml.targets.cpu.contraction.digits import emit_digit_kernel


class DigitCode(ContractionCode):
    """Emits a contraction of rows in digits. Micro-kernels prefetch narrow numbers of the next part."""

    prefetches_b = True

    def emit_micro_kernel(self) -> None:
        tiling = self.tiling
        assert tiling.b.narrow is not None
        layout, module = tiling.a.digit_rows(self.lanes), self.function.module
        self.micro = emit_digit_kernel(
            module, "micro", tiling.micro, self.lanes, layout, tiling.b.narrow, self.column_pitch
        )
