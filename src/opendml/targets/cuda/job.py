"""The launches of a program, with the parameters of all of them in one piece of memory.

Another size or another tensor changes some words, which NumPy writes for all launches at once. So a size of a
known bucket costs the host little more than the launches themselves.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np

from opendml.errors import Unsupported
from opendml.program.sizes import is_traced
from opendml.targets.cuda.driver import CudaDevice
from opendml.targets.cuda.launcher import LaunchConfig, launcher
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.memory import Memory
from opendml.targets.cuda.planned_launch import VECTOR_BYTES, PlannedLaunch, alignment_of
from opendml.targets.cuda.tensor_map import MAP_BYTES, TensorMap, encoded
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
_FURTHER = 1 << 12
"""Bytes from an address to another one, for which a tensor map is encoded too."""
_checked_maps = set[type[TensorMap]]()
"""The kinds of tensor maps whose encodings were checked."""
IntegerArray = np.ndarray[Any, np.dtype[np.int64]]
Accesses = Sequence[tuple[int | None, int]]
"""The buffers and the offsets of the accesses of a kernel."""


class JobForm:
    """The form of a job: all that is the same for its instances.

    Args:
        launches: the launches.
        accesses: for each launch, the accesses of each of its kernels.
        buffers: the number of buffers.
        machine: the device.

    Attributes:
        sizes: the traced numbers, in the order in which `CudaJob.resize` takes their values.
    """

    def __init__(
        self,
        launches: Sequence[PlannedLaunch],
        accesses: Sequence[Sequence[Accesses]],
        buffers: int,
        machine: CudaMachine,
    ) -> None:
        self.launches, self.machine, self.buffers = launches, machine, buffers
        words, divisors, facts, offsets, numbers = (list[int]() for _ in range(5))
        self._words_at, self._divisors_at, self._facts_at, self._offsets_at = (list[int]() for _ in range(4))
        self._shares = list[tuple[int, int]]()
        """The places of numbers that are one over a traced word, and of these words."""
        kinds, placed = dict[Hashable, int](), list[tuple[int, int, int]]()
        self.maps = list[tuple[TensorMap, tuple[int, ...]]]()
        """The tensor maps, each with its numbers. Launches of equal layers share them."""
        contents, begins, end = list[bytes](), list[int](), 0
        bases, base_buffers, base_offsets, masks, owners = (list[int]() for _ in range(5))
        next_words, self.next_owners = list[int](), list[int]()
        self.counters, self.scratch = list[tuple[int, int]](), list[int]()
        table = list[list[int]]()
        for number, (launch, of) in enumerate(zip(launches, accesses, strict=True)):
            layout = launch.layout
            plain = [0 if type(each) is not int and is_traced(each) else each for each in launch.numbers]
            first_fact = layout.words + layout.divisors
            traced = [at for at, each in enumerate(launch.numbers) if each is not plain[at]]
            for at in traced:
                if layout.words <= at < first_fact:
                    plain[at] = 1  # It has no magic numbers if it is 0.
            if layout.share is not None and layout.share in traced:
                plain[layout.share] = 1
            content = layout.pack(plain)
            begins.append(end)
            table.append(plain[first_fact : first_fact + 4])
            for place, of_kernel in enumerate(of):
                begin = end + place * (len(content) // _WORD)
                contents.append(content)
                for at in traced:
                    value = launch.numbers[at]
                    if at < layout.words:
                        words.append(value)
                        self._words_at.append(begin + at)
                    elif at < first_fact:
                        divisors.append(value)
                        self._divisors_at.append(begin + 2 * at - layout.words)
                if layout.share is not None and layout.share in traced:
                    behind = begin + layout.words + 2 * layout.divisors
                    self._shares.append((behind, begin + layout.share))
                first_base = len(bases)
                for at, ((buffer, offset), alignment) in enumerate(
                    zip(of_kernel, launch.alignments, strict=True)
                ):
                    is_open = type(offset) is not int and is_traced(offset)
                    if is_open:
                        offsets.append(offset)
                        self._offsets_at.append(len(bases))
                    bases.append(begin + at)
                    base_buffers.append(buffers if buffer is None else buffer)
                    base_offsets.append(0 if is_open else _signed(offset))
                    masks.append(0 if buffer is None else alignment - 1)
                    owners.append(number)
                next_words.append(begin + layout.lets_next_begin)
                self.next_owners.append(number)
                if layout.counters is not None:
                    self.counters.append((number, begin + layout.counters))
                if layout.scratch is not None:
                    self.scratch.append(begin + layout.scratch)
                rest = launch.numbers[first_fact + 4 :]
                for place_of_map, tensor in enumerate(launch.maps):
                    own, rest = rest[: len(tensor.numbers)], rest[len(tensor.numbers) :]
                    # Equal expressions are one object. Comparing them would guard their values.
                    key = (
                        repr(tensor.to_json()),
                        *[each if type(each) is int else (id(each),) for each in own],
                    )
                    kind = kinds.setdefault(key, len(self.maps))
                    if kind == len(self.maps):
                        self.maps.append((tensor, own))
                    word = begin + layout.map_offset(place_of_map) // _WORD
                    placed.append((kind, word, first_base + tensor.access))
            for at in range(4):
                if first_fact + at in traced:
                    facts.append(launch.numbers[first_fact + at])
                    self._facts_at.append(4 * number + at)
            end += len(of) * len(content) // _WORD
            gap = -end % _UNIT
            contents.append(bytes(_WORD * gap))
            end += gap
        for _, own in self.maps:
            numbers += [each for each in own if type(each) is not int and is_traced(each)]
        of_maps = np.array(placed, np.intp).reshape(len(placed), 3)
        kinds_of = of_maps[:, 0].tolist()
        self.map_firsts = [kinds_of.index(kind) for kind in range(len(self.maps))]
        """The place in `map_kinds` of each tensor map."""
        own_divisors = dict[int, int]()
        # Equal expressions are one object.
        self._divisor_kinds = np.array(
            [own_divisors.setdefault(id(each), len(own_divisors)) for each in divisors], np.intp
        )
        self._divisor_firsts = np.unique(self._divisor_kinds, return_index=True)[1]
        self.following = np.roll(np.arange(len(launches)), -1)
        """The number of the launch after each one. Dispatches are often repeated, so the last is followed by
        the first."""
        self.map_kinds, self.map_words, self.map_bases = of_maps.T
        """For each tensor map of a launch its number, its first word, and the access that it follows."""
        self.map_places = self.map_words[:, None] + np.arange(MAP_BYTES // _WORD)
        groups = words, divisors, facts, offsets, numbers
        self.sizes = [*chain.from_iterable(groups)]
        self._ends = list(accumulate(map(len, groups)))
        self.template = np.frombuffer(b"".join(contents), np.int64)
        self.begins = begins
        self.facts = np.array(table, np.int64).reshape(len(table), 4)
        self.bases, self.base_buffers = np.array(bases, np.intp), np.array(base_buffers, np.intp)
        self.offsets, self.masks = np.array(base_offsets, np.int64), np.array(masks, np.int64)
        self.owners, self.next_words = np.array(owners, np.intp), np.array(next_words, np.intp)
        self._places = [
            np.array(each, np.intp)
            for each in (self._words_at, self._divisors_at, self._facts_at, self._offsets_at)
        ]
        self.kernels = np.array([each.kernels for each in launches], np.int64)
        # CUDA does not define early launches whose blocks must all run at once.
        early = [machine.launches_early and not each.cooperative for each in launches]
        self.early = np.array(early, np.bool_)
        self.may_gain = self.early & np.array([each.gains_early for each in launches], np.bool_)

    def write(
        self, values: IntegerArray, words: IntegerArray, facts: IntegerArray, offsets: IntegerArray
    ) -> None:
        """Write values of the sizes, but for those of maps, which `map_values` returns."""
        own, divisors, of_facts, of_offsets = self._ends[:4]
        words_at, divisors_at, facts_at, offsets_at = self._places
        words[words_at] = values[:own]
        found = values[own:divisors]
        words[divisors_at] = found
        words[divisors_at + 1] = magics(found[self._divisor_firsts])[self._divisor_kinds]
        for place, word in self._shares:
            words[place : place + 1].view(np.float64)[0] = 1.0 / words[word]
        facts.reshape(-1)[facts_at] = values[divisors:of_facts]
        offsets[offsets_at] = values[of_facts:of_offsets]

    def map_values(self, values: IntegerArray) -> list[int]:
        """Return the values of the traced numbers of maps."""
        return values[self._ends[3] : self._ends[4]].tolist()  # type: ignore[no-any-return]


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
        self._facts, self._offsets = form.facts.copy(), form.offsets.copy()
        count = len(form.launches)
        self._configs = [LaunchConfig() for _ in range(count)]
        self._grids = self._launched_shared = np.full(count, -1, np.int64)
        """The blocks and the bytes of shared memory of the launchers."""
        self.launchers: list[Callable[[], None]] = [_nothing] * count
        self._stream: int | None = None
        self._counters: dict[int, Memory] = {}
        self._maps = _EncodedMaps(form)
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
        self._words[self.form.next_words] = (gains & self.form.early)[self.form.next_owners]

    def place(self, addresses: IntegerArray) -> list[int]:
        """Write the addresses of all accesses, and return the launches that do not serve these.

        Args:
            addresses: those of the buffers, and 0.
        """
        form = self.form
        self._bases = bases = addresses[form.base_buffers] + self._offsets
        unaligned = bases & form.masks
        failed = np.empty(0, np.intp)
        if unaligned.any():
            failed = np.unique(form.owners[np.flatnonzero(unaligned)])
        self._words[form.bases] = bases
        if len(form.maps):
            self._maps.write(self._words, bases, failed)
        return failed.tolist()

    def placed(self, number: int) -> tuple[Sequence[Accesses], tuple[int, ...]]:
        """Return the accesses of each kernel of a launch, and their alignments where they are now, in
        bytes."""
        form, launch = self.form, self.form.launches[number]
        own = np.flatnonzero(form.owners == number).reshape(-1, len(launch.alignments))
        buffers = [
            [None if each == form.buffers else each for each in row]
            for row in form.base_buffers[own].tolist()
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
                self._configs[number],
            )
        self._grids, self._launched_shared, self._stream = grids.copy(), shared, stream


class _EncodedMaps:
    """The tensor maps of a job as the driver encodes them.

    Encodings for two addresses differ in the first word alone, which has the address. This is checked once
    for each kind of map. So the maps of a launch need no call of the driver where only addresses change.
    """

    def __init__(self, form: JobForm) -> None:
        self._form, self._values = form, list[int]()
        count = len(form.maps)
        self._maps = list[TensorMap | None]([None] * count)
        self._numbers = list[list[int] | None]([None] * count)
        self._rows: IntegerArray = np.zeros((count, MAP_BYTES // _WORD), np.int64)
        self._offsets: IntegerArray = np.zeros(count, np.int64)
        self._new = set(range(count))
        """The maps that are not encoded yet."""

    def resize(self, values: list[int]) -> None:
        """Use other values of the traced numbers."""
        if values == self._values and None not in self._maps:
            return
        rest, self._values = iter(values), values
        for number, (map, own) in enumerate(self._form.maps):
            numbers = [next(rest) if type(each) is not int and is_traced(each) else each for each in own]
            if numbers != self._numbers[number]:
                self._numbers[number], sized = numbers, map.with_numbers(numbers)
                self._maps[number] = sized
                self._offsets[number] = sized.offset
                self._new.add(number)

    def write(self, words: IntegerArray, bases: IntegerArray, failed: IntegerArray) -> None:
        """Write all maps.

        Args:
            words: the words of the job.
            bases: the addresses of accesses.
            failed: launches whose maps are not used.

        Raises:
            DeviceRemoved: the driver does not accept a map.
        """
        form = self._form
        addresses = bases[form.map_bases] + self._offsets[form.map_kinds]
        if self._new:
            every: Iterable[tuple[int, int]] = enumerate(form.map_firsts)
            if len(failed):
                used = np.flatnonzero(~np.isin(form.owners[form.map_bases], failed))
                kinds, firsts = np.unique(form.map_kinds[used], return_index=True)
                every = zip(kinds.tolist(), used[firsts].tolist(), strict=True)
            for number, first in every:
                map = self._maps[number]
                if number in self._new and map is not None:
                    self._rows[number] = _encoding(map, int(addresses[first]))
                    self._new.discard(number)
        words[form.map_places] = self._rows[form.map_kinds]
        words[form.map_words] = addresses


def _encoding(map: TensorMap, address: int) -> IntegerArray:
    """Return the words of a tensor map, of which the first is the address.

    Raises:
        Unsupported: the driver writes the address elsewhere.
    """
    first: IntegerArray = np.frombuffer(encoded(map, address), np.int64)
    if type(map) not in _checked_maps:
        second = np.frombuffer(encoded(map, address + _FURTHER), np.int64)
        is_first = (first[0], second[0]) == (address, address + _FURTHER)
        if not is_first or not np.array_equal(first[1:], second[1:]):
            raise Unsupported("cuda: this driver encodes the addresses of tensor maps in another way")
        _checked_maps.add(type(map))
    return first


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
