"""The launches of a program, with the parameters of all of them in one piece of memory.

Another size or another tensor changes some words, which NumPy writes for all launches at once. So a size of a
known bucket costs the host little more than the launches themselves.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np

from opendml.program.sizes import is_traced
from opendml.targets.cuda.driver import CudaDevice
from opendml.targets.cuda.encoded_maps import EncodedMaps, IntegerArray, MapForm
from opendml.targets.cuda.launcher import LaunchConfig, launcher
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.memory import Memory
from opendml.targets.cuda.planned_launch import VECTOR_BYTES, PlannedLaunch, alignment_of
from opendml.targets.memory import address_of, aligned_bytes

_WORD = struct.calcsize("<q")
_UNIT = 8
"""Words of which a multiple lies before the parameters of each launch, because of tensor maps."""
_CROWDED = 0.5, 0.7
"""Blocks for each multiprocessor, between which a grid loses by an early launch. Its blocks do not all fit
beside the kernel before, and crowd on the multiprocessors that are free first. Of 132 multiprocessors, a
convolution with 80 blocks took 24.3 us rather than 18.7, and those with 98 gained 0.8 us (H100)."""
_GRID, _SHARED, _COUNTERS, _SCRATCH = range(4)
"""The columns of the facts of launches."""
Accesses = Sequence[tuple[int | None, int]]
"""The buffers and the offsets of the accesses of a kernel."""
_Place = tuple[int, int]
"""A place that takes the value of a traced number, and this number."""


class AccessTable(NamedTuple):
    """The accesses of all kernels of a job, as columns.

    Attributes:
        words: the words that take their addresses.
        buffers: the buffers in which they are. Those in none have the number of buffers.
        offsets: their offsets in these. Traced ones are 0.
        masks: the bits of their addresses that must be 0.
        launches: the numbers of their launches.
    """

    words: IntegerArray
    buffers: IntegerArray
    offsets: IntegerArray
    masks: IntegerArray
    launches: IntegerArray


class _PlacedLaunch(NamedTuple):
    """A launch with the places of its kernels in a job.

    Attributes:
        launch: the launch.
        traced: the places of the traced numbers among its numbers.
        plain: its numbers, with 0 or 1 in place of traced ones.
        accesses: the accesses of each kernel.
        kernels: for each kernel, the first word of its parameters, and the number of its first access.
        first_fact: the place of the first fact among the numbers, behind words and divisors.
    """

    launch: PlannedLaunch
    traced: Sequence[int]
    plain: Sequence[int]
    accesses: Sequence[Accesses]
    kernels: Sequence[tuple[int, int]]
    first_fact: int


class _Written(NamedTuple):
    """The places that take some of the values of the sizes, and these values among all."""

    places: np.ndarray[Any, np.dtype[np.intp]]
    values: slice


class JobForm:
    """The form of a job: all that is the same for its instances.

    Args:
        launches: the launches.
        accesses: for each launch, the accesses of each of its kernels.
        buffers: the number of buffers.
        machine: the device.

    Attributes:
        sizes: the traced numbers, in the order in which `CudaJob.resize` takes their values.
        template: the words of the job. Addresses and traced numbers are missing.
        begins: for each launch, the first word of the parameters of its first kernel.
        facts: for each launch, its facts in the columns `_GRID` to `_SCRATCH`. Traced ones are missing.
        kernels: for each launch, the number of its kernels.
        early: for each launch, whether it may begin before the one before it has ended.
        may_gain: for each launch, whether it gains from that with some grids.
        accesses: the accesses of all kernels.
        maps: the tensor maps of all kernels.
        owners: for each kernel, the number of its launch.
        next_words: for each kernel, the word that lets the next launch begin.
        counters: the number of the launch of each kernel that has counters, and the word for their address.
        scratch: the words for the address of the scratch memory.
    """

    def __init__(
        self,
        launches: Sequence[PlannedLaunch],
        accesses: Sequence[Sequence[Accesses]],
        buffers: int,
        machine: CudaMachine,
    ) -> None:
        self.launches, self.machine, self.buffers = launches, machine, buffers
        placed, self.template = _placed(launches, accesses)
        self.begins = [each.kernels[0][0] for each in placed]
        facts = [each.plain[each.first_fact : each.first_fact + 4] for each in placed]
        self.facts = np.array(facts, np.int64).reshape(-1, 4)
        self.kernels = np.array([each.kernels for each in launches], np.int64)
        # CUDA does not define early launches whose blocks must all run at once.
        early = [machine.launches_early and not each.cooperative for each in launches]
        self.early = np.array(early, np.bool_)
        self.may_gain = self.early & np.array([each.gains_early for each in launches], np.bool_)
        self.accesses = _access_table(placed, buffers)
        self.maps = MapForm(zip(launches, (each.kernels for each in placed), strict=True))
        kernels = [
            (number, begin, each.launch.layout)
            for number, each in enumerate(placed)
            for begin, _ in each.kernels
        ]
        self.owners = np.array([number for number, _, _ in kernels], np.intp)
        self.next_words = np.array([begin + layout.lets_next_begin for _, begin, layout in kernels], np.intp)
        self.counters = [
            (number, begin + layout.counters)
            for number, begin, layout in kernels
            if layout.counters is not None
        ]
        self.scratch = [begin + layout.scratch for _, begin, layout in kernels if layout.scratch is not None]
        self.following = np.roll(np.arange(len(launches)), -1)
        """The number of the launch after each one. Dispatches are often repeated, so the last is followed by
        the first."""
        self._set_sizes(placed)

    def _set_sizes(self, placed: Sequence[_PlacedLaunch]) -> None:
        """Find the traced numbers, and the places that take their values."""
        words, divisors, facts = list[_Place](), list[_Place](), list[_Place]()
        shares = list[tuple[int, int]]()
        for number, each in enumerate(placed):
            layout, numbers, first_fact = each.launch.layout, each.launch.numbers, each.first_fact
            for begin, _ in each.kernels:
                for at in each.traced:
                    if at < layout.words:
                        words.append((begin + at, numbers[at]))
                    elif at < first_fact:
                        divisors.append((begin + 2 * at - layout.words, numbers[at]))
                if layout.share is not None and layout.share in each.traced:
                    behind = begin + layout.words + 2 * layout.divisors
                    shares.append((behind, begin + layout.share))
            row = 4 * number - first_fact
            facts += [(row + at, numbers[at]) for at in each.traced if first_fact <= at < first_fact + 4]
        self._shares = np.array(shares, np.intp).reshape(-1, 2).T
        """The places of numbers that are one over a traced word, and of these words."""
        every = chain.from_iterable(chain.from_iterable(each.accesses) for each in placed)
        offsets = [
            (at, each) for at, (_, each) in enumerate(every) if type(each) is not int and is_traced(each)
        ]
        groups = words, divisors, facts, offsets
        self.sizes = [*[number for each in groups for _, number in each], *self.maps.sizes]
        ends = [*accumulate(map(len, groups), initial=0), len(self.sizes)]
        *spans, self._map_values = map(slice, ends, ends[1:])
        self._words, self._divisors, self._facts, self._offsets = (
            _Written(np.array([place for place, _ in each], np.intp), span)
            for each, span in zip(groups, spans, strict=True)
        )
        kinds = dict[int, int]()
        # Equal expressions are one object.
        of_divisors = [kinds.setdefault(id(number), len(kinds)) for _, number in divisors]
        self._divisor_kinds = np.array(of_divisors, np.intp)
        self._divisor_firsts = np.unique(self._divisor_kinds, return_index=True)[1]

    def write(
        self, values: IntegerArray, words: IntegerArray, facts: IntegerArray, offsets: IntegerArray
    ) -> None:
        """Write values of the sizes, but for those of maps, which `map_values` returns."""
        words[self._words.places] = values[self._words.values]
        places, divisors = self._divisors.places, values[self._divisors.values]
        words[places] = divisors
        words[places + 1] = magics(divisors[self._divisor_firsts])[self._divisor_kinds]
        shares, shared = self._shares
        words.view(np.float64)[shares] = 1.0 / words[shared]
        facts.reshape(-1)[self._facts.places] = values[self._facts.values]
        offsets[self._offsets.places] = values[self._offsets.values]

    def map_values(self, values: IntegerArray) -> list[int]:
        """Return the values of the traced numbers of maps."""
        return values[self._map_values].tolist()  # type: ignore[no-any-return]


def _placed(
    launches: Sequence[PlannedLaunch], accesses: Sequence[Sequence[Accesses]]
) -> tuple[list[_PlacedLaunch], IntegerArray]:
    """Place the parameters of launches one after another, and return their words too."""
    placed, contents, end, first_access = list[_PlacedLaunch](), list[bytes](), 0, 0
    for launch, own in zip(launches, accesses, strict=True):
        traced = [at for at, each in enumerate(launch.numbers) if type(each) is not int and is_traced(each)]
        plain = _plain_numbers(launch, traced)
        content = launch.layout.pack(plain)
        size, width = len(content) // _WORD, len(launch.alignments)
        kernels = [(end + size * each, first_access + width * each) for each in range(len(own))]
        first_fact = launch.layout.words + launch.layout.divisors
        placed.append(_PlacedLaunch(launch, traced, plain, own, kernels, first_fact))
        gap = -size * len(own) % _UNIT
        contents += [content * len(own), bytes(_WORD * gap)]
        end += size * len(own) + gap
        first_access += width * len(own)
    return placed, np.frombuffer(b"".join(contents), np.int64)


def _plain_numbers(launch: PlannedLaunch, traced: Sequence[int]) -> list[int]:
    """Return the numbers of a launch with 0 in place of traced ones, or 1 if something is divided by them."""
    plain, layout = [*launch.numbers], launch.layout
    for at in traced:
        is_divisor = layout.words <= at < layout.words + layout.divisors
        plain[at] = int(is_divisor or at == layout.share)
    return plain


def _access_table(placed: Sequence[_PlacedLaunch], buffers: int) -> AccessTable:
    """Return the accesses of all kernels."""
    rows = [
        (
            begin + at,
            buffers if buffer is None else buffer,
            0 if type(offset) is not int and is_traced(offset) else _signed(offset),
            0 if buffer is None else alignment - 1,
            number,
        )
        for number, each in enumerate(placed)
        for (begin, _), own in zip(each.kernels, each.accesses, strict=True)
        for at, ((buffer, offset), alignment) in enumerate(zip(own, each.launch.alignments, strict=True))
    ]
    every = np.fromiter(chain.from_iterable(rows), np.int64)  # Twice as fast as an array of tuples.
    return AccessTable(*every.reshape(-1, 5).T.copy())


class CudaJob:
    """The launches of an instance on a device.

    Attributes:
        launchers: functions that add the launches to a stream.
        gains: for each launch, whether it gains from being launched before the one before it has ended.
    """

    def __init__(self, form: JobForm, owner: CudaDevice) -> None:
        self.form, self._owner = form, owner
        self._content = aligned_bytes(np.empty, form.template.nbytes)
        self._words = self._content.view(np.int64)
        self._words[:] = form.template
        self._address = address_of(self._content)
        self._facts, self._offsets = form.facts.copy(), form.accesses.offsets.copy()
        count = len(form.launches)
        self._configs, self._spare_configs = ([LaunchConfig() for _ in range(count)] for _ in range(2))
        """The descriptions of launches, and those with other shared memory, to which a size may return."""
        self._grids = self._launched_shared = np.full(count, -1, np.int64)
        """The blocks and the bytes of shared memory of the launchers."""
        self.launchers: list[Callable[[], None]] = [_nothing] * count
        self._stream: int | None = None
        self._counters: dict[int, Memory] = {}
        self._maps = EncodedMaps(form.maps)
        if not form.sizes:
            self._maps.resize([])
            self._decide()

    def resize(self, values: IntegerArray) -> None:
        """Use other values of the sizes of the form, perhaps with others behind them."""
        form = self.form
        form.write(values, self._words, self._facts, self._offsets)
        self._maps.resize(form.map_values(values))
        self._decide()

    def _decide(self) -> None:
        """Decide which launches gain from an early launch, and how much shared memory blocks get."""
        form, machine, facts = self.form, self.form.machine, self._facts
        blocks = facts[:, _GRID] * form.kernels
        least, most = (each * machine.multiprocessors for each in _CROWDED)
        self.gains = form.may_gain & ~((least < blocks) & (blocks < most))
        # No two blocks may share the multiprocessor that is free first. With half of the shared memory each,
        # they do not fit, because CUDA reserves some of it for each block.
        is_alone = self.gains & (blocks <= machine.multiprocessors)
        half = np.maximum(facts[:, _SHARED], machine.shared_bytes // 2)
        self._shared = np.where(is_alone, half, facts[:, _SHARED])

    @property
    def scratch_bytes(self) -> int:
        """The scratch memory of the launch that needs most."""
        return int(self._facts[:, _SCRATCH].max(initial=0))

    def use_scratch(self, address: int) -> None:
        """Set the address of the scratch memory."""
        self._words[self.form.scratch] = address

    def let_next_begin(self, gains: np.ndarray[Any, Any]) -> None:
        """Tell each launch whether the one after it gains if it is launched early."""
        self._words[self.form.next_words] = (gains & self.form.early)[self.form.owners]

    def place(self, addresses: IntegerArray) -> list[int]:
        """Write the addresses of all accesses, and return the launches that do not serve these.

        Args:
            addresses: those of the buffers, and 0.
        """
        accesses = self.form.accesses
        self._bases = bases = addresses[accesses.buffers] + self._offsets
        unaligned = bases & accesses.masks
        failed = np.empty(0, np.intp)
        if unaligned.any():
            failed = np.unique(accesses.launches[np.flatnonzero(unaligned)])
        self._words[accesses.words] = bases
        if self.form.maps.maps:
            self._maps.write(self._words, bases, failed)
        return failed.tolist()

    def placed(self, number: int) -> tuple[Sequence[Accesses], tuple[int, ...]]:
        """Return the accesses of each kernel of a launch, and their alignments where they are now, in
        bytes."""
        form, launch = self.form, self.form.launches[number]
        own = np.flatnonzero(form.accesses.launches == number).reshape(-1, len(launch.alignments))
        buffers = [
            [None if each == form.buffers else each for each in row]
            for row in form.accesses.buffers[own].tolist()
        ]
        offsets = self._offsets[own].tolist()
        bits = np.bitwise_or.reduce(self._bases[own], axis=0).tolist()
        alignments = [
            VECTOR_BYTES if buffer is None else alignment_of(each)
            for buffer, each in zip(buffers[0], bits, strict=True)
        ]
        every = zip(buffers, offsets, strict=True)
        return [list(zip(*each, strict=True)) for each in every], tuple(alignments)

    def load(self) -> None:
        """Load the code of all launches, so that errors come early and the first dispatch is fast."""
        for launch, shared_bytes in zip(self.form.launches, self._shared.tolist(), strict=True):
            self._owner.function(launch.cubin.code, shared_bytes)

    def prepare(self, stream: int) -> None:
        """Make launchers for a stream, with the code and the memory that they need.

        Raises:
            Unsupported: no memory.
        """
        form, facts = self.form, self._facts
        for number, word in form.counters:
            size = int(facts[number, _COUNTERS])
            if size:
                known = self._counters.get(number)
                if known is None or known.size < size:
                    known = self._counters[number] = self._owner.allocate(size)
                    self._words[word] = known.address
        grids, shared = facts[:, _GRID], self._shared
        changed = list(range(len(form.launches)))
        if stream == self._stream:
            others, configs = np.flatnonzero(grids != self._grids), self._configs
            for number, grid in zip(others.tolist(), grids[others].tolist(), strict=True):
                configs[number].set_blocks(grid)
            changed = np.flatnonzero(shared != self._launched_shared).tolist()
        self._stream = None  # Until all launchers are made.
        for number in changed:
            launch, grid, shared_bytes = form.launches[number], int(grids[number]), int(shared[number])
            config = self._spare_configs[number]
            self._spare_configs[number], self._configs[number] = self._configs[number], config
            if config.served == (shared_bytes, stream) and config.made is not None:
                config.set_blocks(grid)
                self.launchers[number] = config.made[3]
                continue
            function = self._owner.function(launch.cubin.code, shared_bytes)
            address = self._address + _WORD * form.begins[number]
            early = bool(form.early[number])
            self.launchers[number] = launcher(
                function,
                launch,
                (grid, launch.kernels, launch.block, shared_bytes),
                address,
                stream,
                early,
                config,
            )
        self._grids, self._launched_shared, self._stream = grids.copy(), shared, stream


def _nothing() -> None:
    """Do nothing."""


def _signed(number: int) -> int:
    """Return the number of 64 bits to which an integer wraps."""
    return (number + 2**63) % 2**64 - 2**63


def magics(counts: IntegerArray) -> IntegerArray:
    """Return the numbers of `magic` for several counts, each of which is positive.

    >>> from opendml.targets.cuda.planned_launch import magic
    >>> counts = np.array([1, 2, 3, 7, 2**16 + 1, 2**31 - 1, 2**31])
    >>> magics(counts).tolist() == [magic(each) for each in counts.tolist()]
    True
    """
    _, bits = np.frexp((counts - 1).astype(np.float64))
    shifts = np.minimum(31 + bits, 62).astype(np.int64)
    found: IntegerArray = -(-(np.int64(1) << shifts) // np.maximum(counts, 1)) | shifts << 32
    found[counts >= 2**31] = 0
    return found
