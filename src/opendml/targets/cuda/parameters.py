"""The parameters of a kernel. Printed code and launches share their names.

A mode declares the words that its code reads. The other words follow from the pattern: addresses, strides,
counts of loops and numbers. Words are integers of 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opendml.across_forks import cached_property
from opendml.late_dataclass import dataclass
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.pattern import WARPGROUP_MODES, WINDOW_MODES, CudaMode, CudaPattern
from opendml.targets.cuda.planned_launch import ParameterLayout

MEANINGS = {
    "lets_next_begin": "1 if the next kernel may be launched as soon as this one has begun; instances set it",
    "items": "groups, lines or tiles that blocks take",
    "units": "units of a group along its reduced loops, or of a line",
    "elements": "elements of a group",
    "rows": "rows of a group",
    "slice_units": "units of a group that one block of a team takes",
    "team": "blocks of a team, which share groups or lines",
    "counters": "address of the counters by which blocks meet; the executable sets it",
    "scratch": "address of the memory that blocks share; the executable sets it",
    "row_length": "units of a row, or its elements if units run over the ends of rows",
    "column_tiles": "tiles side by side along the innermost loop",
    "all_units": "units of the domain of an element-wise kernel",
    "full_units": "units of a row that are full",
    "rest": "elements of a row after its full units",
    "width": "elements of a row of the results that are transposed",
    "height": "rows of the results that are transposed",
    "tiles_across": "tiles of a matrix side by side",
    "tiles_down": "tiles of a matrix below each other",
    "matrix_tiles": "tiles of a matrix",
    "zero": "0, which compilers do not know",
    "places": "elements of a line of the results to which elements are placed",
    "panel": "lines side by side whose elements neighbouring threads place",
    "warp_words": "words of 32 positions that a warp finds at a time",
    "wanted": "least elements that are wanted of a line",
    "line_words": "words of a line that is sorted, a power of two",
    "m": "rows of a product",
    "n": "columns of a product",
    "k": "products of a sum",
    "split_depth": "products of a sum that one block takes",
    "inner_k": "products of a sum along the inner one of two loops",
    "splits": "blocks that share a tile along k",
    "depth": "products of a score",
    "keys": "keys of a chain",
    "queries": "queries of a chain",
    "matrices": "products of a batch",
    "band": "matrices whose tiles follow each other",
    "slice_tiles": "tiles of keys that one block takes",
    "slice_keys": "keys that one block takes",
    "run_items": "items that follow each other: of a matrix, or of a band of matrices",
    **{f"begin{axis}": f"first element of the first window along axis {axis}" for axis in (0, 1)},
    **{f"size{axis}": f"pixels of an image along axis {axis}" for axis in (0, 1)},
    **{f"stride{axis}": f"elements between windows along axis {axis}" for axis in (0, 1)},
    **{f"dilation{axis}": f"elements between taps along axis {axis}" for axis in (0, 1)},
    **{f"pixels{axis}": f"results along axis {axis}, the innermost of an image being 0" for axis in (0, 1)},
    "taps0": "taps along the innermost axis of an image",
    "channels": "padded channels of a tap",
    "before": "bytes from the first tap of the first window to the first pixel",
    "pixel_bytes": "bytes between pixels of a line",
    "line_bytes": "bytes between lines of an image",
    "step": "items between those that a thread makes",
    "block_columns": "columns of a product that a block makes",
    "own_channels": "channels of a tap that exist",
}
"""The words that modes declare."""


@dataclass(frozen=True)
class ModeWords:
    """The words of a mode: plain ones, those by which the code divides, and the names of its tensor maps."""

    plain: tuple[str, ...]
    divisors: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()


_SHARED = ("counters", "scratch")
_TEAM = ("team", *_SHARED)
_TILED = ModeWords(
    ("m", "n", "k", "split_depth", "splits", "tiles_across", *_SHARED), ("matrix_tiles", "tiles_down")
)
_WARPGROUPS = ModeWords(("items", *_TILED.plain), _TILED.divisors, ("a_map", "b_map"))
_CHAIN = ModeWords(("m", "n", "keys", "depth"), ("tiles_down",))
_WORDS = {
    CudaMode.POINTWISE: ModeWords(("all_units", "full_units", "rest"), ("row_length",)),
    CudaMode.TRANSPOSED: ModeWords(("width", "height"), ("tiles_across", "tiles_down")),
    CudaMode.REDUCE: ModeWords(
        ("items", "units", "elements", "rows", "slice_units", *_TEAM), ("row_length", "column_tiles")
    ),
    CudaMode.SCAN: ModeWords(("items", "units", "zero", *_TEAM), ("row_length", "column_tiles")),
    CudaMode.SCATTER: ModeWords(("items", "units", "places", "panel"), ("row_length",)),
    CudaMode.SCATTER_LINES: ModeWords(("items", "units", "places"), ("row_length",)),
    CudaMode.POSITIONS: ModeWords(("units", "warp_words", *_TEAM), ("row_length",)),
    CudaMode.TOP: ModeWords(("items", "units", "wanted", "slice_units", *_TEAM)),
    CudaMode.SORT: ModeWords(("items", "units", "wanted", "line_words", *_TEAM)),
    **dict.fromkeys((CudaMode.FMA, CudaMode.MMA, CudaMode.IMMA), _TILED),
    **dict.fromkeys(WARPGROUP_MODES, replace(_WARPGROUPS, divisors=(*_WARPGROUPS.divisors, "inner_k"))),
    **dict.fromkeys(
        WINDOW_MODES,
        ModeWords(
            (
                *(*_WARPGROUPS.plain, "own_channels"),
                *("begin0", "begin1", "stride0", "stride1", "dilation0", "dilation1"),
            ),
            (*_WARPGROUPS.divisors, "pixels0", "pixels1", "taps0", "channels"),
            _WARPGROUPS.maps,
        ),
    ),
    CudaMode.DEPTHWISE: ModeWords(
        (
            *("items", "units", "step", "before", "line_bytes", "size0", "size1", "begin0", "begin1"),
            *("pixels0", "pixels1"),
        ),
        ("tiles_across", "tiles_down", "column_tiles"),
    ),
    CudaMode.SHORT_SUMS: ModeWords(
        (
            *("items", "m", "n", "k", "step", "block_columns", "before", "pixel_bytes", "line_bytes"),
            *(f"{name}{axis}" for name in ("size", "begin", "stride", "dilation") for axis in (0, 1)),
        ),
        ("pixels0", "pixels1", "taps0", "own_channels", "column_tiles"),
    ),
    **dict.fromkeys((CudaMode.FMA_CHAIN, CudaMode.MMA_CHAIN), _CHAIN),
    CudaMode.FEW_ROWS_CHAIN: ModeWords(("m", "n", "keys", "depth", "slice_keys", *_SHARED), ("run_items",)),
    CudaMode.WGMMA_CHAIN: ModeWords(
        ("items", "queries", "n", "keys", "matrices", "band", "slice_tiles", *_SHARED),
        ("tiles_down", "run_items"),
        ("q_map", "k_map", "v_map"),
    ),
}


def words_of(mode: CudaMode) -> ModeWords:
    """Return the words of a mode."""
    return _WORDS[mode]


def launch_words(mode: CudaMode, **values: int) -> dict[str, int]:
    """Return the words of a launch by name.

    Raises:
        TypeError: a word that the mode declares is missing, or the mode does not declare one.
    """
    words = words_of(mode)
    wanted = {*words.plain, *words.divisors}.difference(_SHARED)
    if values.keys() != wanted:
        missing, unknown = sorted(wanted - values.keys()), sorted(values.keys() - wanted)
        raise TypeError(f"{mode.name} lacks the words {missing} and has no words {unknown}")
    return values


@dataclass(frozen=True)
class ParameterStruct:
    """The layout of the parameters of a pattern: names of words in order. A divisor takes two words."""

    pattern: CudaPattern

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The plain words: addresses of the accesses, `lets_next_begin`, words of the mode, strides in bytes,
        and numbers.

        Accesses that move alike share their strides.
        """
        accesses = self.pattern.accesses
        names = [f"base{number}" for number in range(len(accesses))]
        names += ["lets_next_begin", *words_of(self.pattern.mode).plain]
        for number, access in enumerate(accesses):
            if self.pattern.offset(number) != number:
                continue
            if access.step is Step.STRIDED:
                names.append(f"step{number}")
            names += [f"group{number}_{loop}" for loop, moves in enumerate(access.groups) if moves]
            names += [f"row{number}_{loop}" for loop, moves in enumerate(access.rows) if moves]
        names += [f"number{index}" for index in range(self.pattern.numbers)]
        return tuple(names)

    @cached_property
    def divisors(self) -> tuple[str, ...]:
        """The divisors of the mode, and the counts of the loops."""
        loops = [f"group_count{loop}" for loop in range(self.pattern.group_loops)]
        loops += [f"row_count{loop}" for loop in range(self.pattern.row_loops)]
        return (*words_of(self.pattern.mode).divisors, *loops)

    @property
    def maps(self) -> tuple[str, ...]:
        """The tensor maps, which are last."""
        return words_of(self.pattern.mode).maps

    @property
    def layout(self) -> ParameterLayout:
        """The places of the parameters."""
        places = {name: number for number, name in enumerate(self.words)}
        return ParameterLayout(
            len(self.words),
            len(self.divisors),
            places.get("elements"),  # The code multiplies by one over the elements of a group.
            len(self.maps),
            places["lets_next_begin"],
            places.get("counters"),
            places.get("scratch"),
        )

    def declaration(self) -> str:
        """Return the C++ structure."""
        lines = [f"    long long {_declared(name)}" for name in self.words]
        lines += [f"    Divisor {_declared(name)}" for name in self.divisors]
        if "elements" in self.words:
            lines.append("    double share;  // one over the elements of a group")
        lines += [f"    TensorMap {name};" for name in self.maps]
        return "\n".join(["struct Parameters {", *lines, "};"])

    def numbers(self, values: Mapping[str, int]) -> list[int]:
        """Return the words and divisors of a launch. Addresses are 0."""
        return [*[values.get(name, 0) for name in self.words], *[values[name] for name in self.divisors]]

    def pack(self, values: Mapping[str, int]) -> bytes:
        """Return the bytes of the structure. Addresses are left zero."""
        return self.layout.pack(self.numbers(values))


def _declared(name: str) -> str:
    return f"{name};  // {MEANINGS[name]}" if name in MEANINGS else f"{name};"
