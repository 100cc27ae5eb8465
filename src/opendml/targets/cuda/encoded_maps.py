"""The tensor maps of a job: where its launches have them, and how the driver encodes them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from opendml.errors import Unsupported
from opendml.program.sizes import is_traced
from opendml.targets.cuda.planned_launch import PlannedLaunch
from opendml.targets.cuda.tensor_map import MAP_BYTES, TensorMap, encoded

IntegerArray = np.ndarray[Any, np.dtype[np.int64]]
_MAP_WORDS = MAP_BYTES // 8
_FURTHER = 1 << 12
"""Bytes from an address to another one, for which a tensor map is encoded too."""
_checked_maps = set[type[TensorMap]]()
"""The kinds of tensor maps whose encodings were checked."""


class MapForm:
    """The tensor maps of launches, without addresses. Launches of equal layers share them.

    Args:
        launches: the launches, each with the first word and the number of the first access of each kernel.

    Attributes:
        maps: the different maps, each with its numbers.
        sizes: the traced numbers among these.
        kinds: for each map of a kernel, its number among `maps`.
        words, accesses, launches: its first word in the job, the access that it follows, and its launch.
        places: for each map of a kernel, its words in the job.
        firsts: for each of `maps`, the number of the first map of a kernel that is equal to it.
    """

    def __init__(self, launches: Iterable[tuple[PlannedLaunch, Sequence[tuple[int, int]]]]) -> None:
        self.maps = list[tuple[TensorMap, tuple[int, ...]]]()
        known, placed = dict[Hashable, int](), list[tuple[int, int, int, int]]()
        for number, (launch, kernels) in enumerate(launches):
            layout = launch.layout
            rest = launch.numbers[layout.words + layout.divisors + 4 :]
            for place, map in enumerate(launch.maps):
                own, rest = rest[: len(map.numbers)], rest[len(map.numbers) :]
                # Equal expressions are one object. Comparing them would guard their values.
                key = repr(map.to_json()), *[each if type(each) is int else (id(each),) for each in own]
                kind = known.setdefault(key, len(self.maps))
                if kind == len(self.maps):
                    self.maps.append((map, own))
                offset = layout.map_offset(place) // 8
                placed += [(kind, begin + offset, first + map.access, number) for begin, first in kernels]
        self.sizes = [
            each for _, own in self.maps for each in own if type(each) is not int and is_traced(each)
        ]
        self.kinds, self.words, self.accesses, self.launches = (
            np.array(placed, np.intp).reshape(-1, 4).T.copy()
        )
        self.places = self.words[:, None] + np.arange(_MAP_WORDS)
        kinds = self.kinds.tolist()
        self.firsts = [kinds.index(kind) for kind in range(len(self.maps))]


class EncodedMaps:
    """The tensor maps of a job as the driver encodes them.

    Encodings for two addresses differ in the first word alone, which has the address. This is checked once
    for each kind of map. So the maps of a launch need no call of the driver where only addresses change.
    """

    def __init__(self, form: MapForm) -> None:
        self._form, self._values = form, list[int]()
        count = len(form.maps)
        self._maps = list[TensorMap | None]([None] * count)
        self._numbers = list[list[int] | None]([None] * count)
        self._rows: IntegerArray = np.zeros((count, _MAP_WORDS), np.int64)
        self._offsets: IntegerArray = np.zeros(count, np.int64)
        self._new = set(range(count))
        """The maps that are not encoded yet."""

    def resize(self, values: list[int]) -> None:
        """Use other values of the sizes of the form."""
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

    def write(self, words: IntegerArray, addresses: IntegerArray, failed: IntegerArray) -> None:
        """Write all maps.

        Args:
            words: the words of the job.
            addresses: those of the accesses.
            failed: the numbers of launches whose maps are not used.

        Raises:
            DeviceRemoved: the driver does not accept a map.
        """
        form = self._form
        own = addresses[form.accesses] + self._offsets[form.kinds]
        if self._new:
            every: Iterable[tuple[int, int]] = enumerate(form.firsts)
            if len(failed):
                used = np.flatnonzero(~np.isin(form.launches, failed))
                kinds, firsts = np.unique(form.kinds[used], return_index=True)
                every = zip(kinds.tolist(), used[firsts].tolist(), strict=True)
            for number, first in every:
                map = self._maps[number]
                if number in self._new and map is not None:
                    self._rows[number] = _encoding(map, int(own[first]))
                    self._new.discard(number)
        words[form.places] = self._rows[form.kinds]
        words[form.words] = own


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
