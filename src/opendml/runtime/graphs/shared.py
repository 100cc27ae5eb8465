"""Memory that models share: prepared constants, and arenas of models of several sizes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np

from opendml.across_forks import importing
from opendml.digests import digest_of
from opendml.late_dataclass import dataclass
from opendml.locked import Locked
from opendml.targets.arenas import Arenas
from opendml.targets.compiled_files import Recorder, constant_key, current_file, recorder
from opendml.targets.memory import Array, OwnMemory

if TYPE_CHECKING:
    from opendml.compiler.recipe import Recipe
    from opendml.targets.backend import DeviceBackend
    from opendml.targets.executable import Executable
    from opendml.targets.kept import Kept

_LARGE = 2**24
"""Bytes of an array whose digest is that of OpenSSL: the time that it saves is as long as importing it."""


class PreparedMemory:
    """Filled memory, which is freed with the last model that reads it."""

    def __init__(self, memory: OwnMemory, size: int) -> None:
        self.memory, self.size = memory, size


class ConstantStore(Locked):
    """Prepared constants, as long as a model reads them. It is safe to use from threads.

    A key is a recipe of the compiler with the identities of the constants that it reads.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kept: WeakValueDictionary[Hashable, PreparedMemory] = WeakValueDictionary()

    @property
    def filling(self) -> AbstractContextManager[object]:
        """The context in which constants are prepared. Threads that load one file at once take turns."""
        return self._lock

    @property
    def bytes(self) -> int:
        """Bytes of all prepared constants."""
        return sum(each.size for each in self._kept.values())

    def found(self, key: Hashable) -> PreparedMemory | None:
        """Return the memory of a key, or None."""
        with self._lock:
            return self._kept.get(key)

    def added(self, key: Hashable, memory: PreparedMemory) -> PreparedMemory:
        """Store memory by a key; return it, or what another thread has stored meanwhile."""
        with self._lock:
            return self._kept.setdefault(key, memory)


class _StoresOfFiles(Locked):
    """The stores of files on devices, as long as a model uses them."""

    def __init__(self) -> None:
        super().__init__()
        self._stores: WeakValueDictionary[Hashable, ConstantStore] = WeakValueDictionary()

    def shared(self, key: Hashable, own: ConstantStore) -> ConstantStore:
        """Return the store of a key, or add one."""
        with self._lock:
            return self._stores.setdefault(key, own)


_stores = _StoresOfFiles()


def kept_memory(
    executable: Executable,
    backend: DeviceBackend,
    identities: Mapping[int, Hashable],
    store: ConstantStore,
    fill: Callable[[Sequence[int], Collection[int]], object],
) -> tuple[PreparedMemory, ...]:
    """Prepare those constants of an executable that the store does not have.

    Args:
        executable: the executable.
        backend: its device.
        identities: keys of constants by number; equal keys mean equal values. Constants without one are not
            shared.
        store: the prepared constants of other models.
        fill: is given addresses for all that the executable keeps, and the places that it must fill.

    Returns:
        The memory of all that the executable keeps.
    """
    with store.filling:
        kept = executable.kept
        keys: list[Hashable] = []
        for each in kept:
            known = tuple(identities.get(number) for number in each.recipe.constants)
            is_shared = each.recipe.text is not None and None not in known
            keys.append((each.recipe.text, known) if is_shared else object())
        found = {place: held for place, key in enumerate(keys) if (held := store.found(key))}
        file = current_file()
        if file is not None:
            wanted = {
                place: _key_in_file(each.recipe, identities)
                for place, each in enumerate(kept)
                if place not in found and each.recipe.text is not None
            }
            mapped = file.constants({key: kept[place].size for place, key in wanted.items()})
            for place, key in wanted.items():
                if key in mapped:
                    found[place] = store.added(keys[place], PreparedMemory(mapped[key], kept[place].size))
        missing = [place for place in range(len(kept)) if place not in found]
        # A step fills all of its memory, also the parts that the store has already.
        steps = {kept[place].step for place in missing}
        new = {
            place: PreparedMemory(backend.allocate(each.size), each.size)
            for place, each in enumerate(kept)
            if each.step in steps
        }
        fill([(new.get(place) or found[place]).memory.address for place in range(len(kept))], new)
        for place in missing:
            found[place] = store.added(keys[place], new[place])
        if (noted := recorder()) is not None:
            note_constants(noted, kept, [found[place] for place in range(len(kept))], identities)
        return tuple(found[place] for place in range(len(kept)))


def note_constants(
    noted: Recorder,
    kept: Sequence[Kept],
    memories: Sequence[PreparedMemory],
    identities: Mapping[int, Hashable],
) -> None:
    """Note prepared constants for a compiled file."""
    for each, memory in zip(kept, memories, strict=True):
        if each.recipe.text is not None:
            key = _key_in_file(each.recipe, identities)
            noted.constants[key] = memory.memory.address, memory.size, memory
            if each.is_computed:
                noted.checked.add(key)


def _key_in_file(recipe: Recipe, identities: Mapping[int, Hashable]) -> str:
    """Return the key of a prepared constant in a compiled file, whose model tells which constants it has."""
    own = [identities.get(number) or ("constant", number) for number in recipe.constants]
    return constant_key(str(recipe.text), tuple(own))


class SharedMemory:
    """Prepared constants and arenas of several models."""

    def __init__(self) -> None:
        self.constants, self.arenas = ConstantStore(), Arenas()
        self._arrays: WeakValueDictionary[Hashable, Array] = WeakValueDictionary()

    def share(self, files: frozenset[Hashable], backend: DeviceBackend) -> None:
        """Share the constants with other models of the same files on a device.

        Args:
            files: equal for files of equal contents; empty: the models have no files.
            backend: the device.
        """
        if files:
            self.constants = _stores.shared((files, backend), self.constants)

    def unchanging(self, array: Array, identity: Hashable) -> tuple[Array, Hashable]:
        """Return a packed array for a constant that nobody writes to, and its identity.

        Args:
            array: its values.
            identity: a key that constants of equal values have. None: a digest of the values is used, and
                one array stands for all equal ones.
        """
        if identity is not None:
            return array, (identity, *_form_of(array))
        key = content_key(array)
        return self._arrays.setdefault(key, array), key


def content_key(array: Array) -> Hashable:
    """Return a key that arrays of equal values and types have."""
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    if len(content) >= _LARGE:
        with importing:
            from hashlib import sha256  # Takes half as long, and loads OpenSSL.
        return sha256(content).digest(), *_form_of(array)
    return digest_of(content).digest(), *_form_of(array)


def _form_of(array: Array) -> tuple[Hashable, ...]:
    # NumPy's own code of a type is the same for signed and unsigned integers of 4 bits.
    return array.dtype.name, array.shape


@dataclass(frozen=True, slots=True)
class Footprint:
    """The memory that some models take.

    Args:
        own_bytes: memory of the models alone.
        kept: prepared constants, which others may share.
        arena_bytes: the largest of their arenas, which are shared.
    """

    own_bytes: int = 0
    kept: frozenset[PreparedMemory] = frozenset()
    arena_bytes: int = 0
