"""ONNX models that were run before on this machine: neither parsed nor traced again.

The cache folder has a file for each model, with its inputs and outputs. It has another one for each form of
inputs, with the plan of the graph that the model became. Both are found by a digest of the bytes of the model
without the data of large initializers. If the trace read such data, as folding does, the file has their
digests too. The `onnx` package and the importer are not imported for a known run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.budget import meter
from opendml.errors import InvalidArgument
from opendml.frontends.onnx.protobuf import GROUP_MARKS, LENGTH_DELIMITED, Content, fields
from opendml.frontends.onnx.sizes import Sizes
from opendml.frontends.onnx.tensor_info import TensorInfo
from opendml.frontends.onnx.weights import Weights
from opendml.locked import Locked
from opendml.logs import log, tell
from opendml.model_files import hold_file, open_file
from opendml.runtime.graphs.shared import Footprint, PreparedMemory, kept_memory
from opendml.runtime.memory.mapped import release
from opendml.targets.compiled_files import CompiledFile, is_compiled_file
from opendml.targets.memory import aligned_bytes
from opendml.targets.object_cache import (
    plans_are_kept,
    read_object,
    sources_stamp,
    trusted_file,
    write_object,
)
from opendml.targets.registry import backend_of

if TYPE_CHECKING:
    from opendml.runtime.graphs.model_cache import ModelCache
    from opendml.targets.backend import DeviceBackend
    from opendml.targets.executable import Executable, Instance

Array = np.ndarray[Any, Any]

LARGE_BYTES = 4096
"""Bytes of the smallest data of an initializer that does not count for the digest of a model."""
_MOST_STORED_BYTES = 2**22
"""Bytes of computed constants that a file of a run may hold. Others are folded again in each process."""
_MOST_READ_BYTES = 2**24
"""Bytes of initializers that the trace may read: each process computes their digests."""
_GRAPH_OF_MODEL, _INITIALIZER_OF_GRAPH, _RAW_DATA_OF_TENSOR = 7, 5, 9
_KIND = "plan"


@dataclass(frozen=True)
class ModelFacts:
    """The declarations of a model.

    Args:
        inputs: the inputs that every call needs.
        outputs: the outputs.
        declared: all inputs, those with an initializer too.
        held: bytes that the loaded model holds.
    """

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    declared: tuple[TensorInfo, ...]
    held: int


def known_model(
    model: Any, device: Any, sizes: Sizes, require_used: bool, trusted: bool
) -> tuple[KnownModel | None, Weights, str, Content | None]:
    """Return the files in the cache about a model, the mapped file of the model, its name for errors, and its
    bytes. In a compiled file these are a part.

    There are none for models that are parsed already, for other devices than processors, and for a device
    that shows intermediate values.
    """
    weights, name = Weights(), "model"
    content: Content | None = None
    kind, threads, debug = "cpu", None, None
    if device is not None and not isinstance(device, str):
        kind, threads, debug = device.kind, device.threads, device._debug
    elif isinstance(device, str):
        kind = device
    if isinstance(model, bytes):
        meter().hold(len(model), name)
        content = model
    elif isinstance(model, str | os.PathLike):
        path = Path(os.fspath(model))
        name = str(path)
        with open_file(path, path) as file:
            if hold_file(file, path):
                content = weights.mapped(path, file).content
    trusted_one = None
    if content and is_compiled_file(content):
        compiled = CompiledFile(content, name)
        content = compiled.model
        if compiled.kind != "onnx":
            raise InvalidArgument(f"{name}: a compiled file of a saved model, which opendml.load reads")
        if not isinstance(model, bytes):
            weights.use(path, content)
        trusted_one = trusted_file(compiled, trusted, name)
    if not content or kind != "cpu" or debug is not None or not plans_are_kept():
        return None, weights, name, content
    backend = backend_of(kind)
    backend.open()
    circumstances = f"{sizes} {bool(sizes) and require_used} {meter().limits}"
    return KnownModel(content, circumstances, backend, threads, trusted_one), weights, name, content


class KnownModel:
    """The files in the cache about a model on a device.

    Args:
        content: the bytes of the model.
        circumstances: all else that a trace depends on: fixed sizes, limits, and the device.
        backend: the device.
        threads: threads that share a dispatch, at most.
        file: the compiled file that the model lies in, if it is trusted.
    """

    def __init__(
        self,
        content: Content,
        circumstances: str,
        backend: DeviceBackend,
        threads: int | None,
        file: CompiledFile | None,
    ) -> None:
        self.content, self._backend, self.file = content, backend, file
        own = f"{_digest_without_data(content)}\n{circumstances} {threads}"
        text = f"{own}\n{_versions()}\n{backend.circumstances()}"
        self._key = hashlib.sha256(text.encode()).hexdigest()
        self._base = np.frombuffer(content, np.uint8).ctypes.data

    def facts(self) -> ModelFacts | None:
        """Return the declarations of the model, if they are in the cache."""
        data = _read(self._key)
        if data is None:
            return None
        each = {
            name: tuple(map(TensorInfo.from_json, data[name])) for name in ("inputs", "outputs", "declared")
        }
        return ModelFacts(each["inputs"], each["outputs"], each["declared"], data["held"])

    def write_facts(self, facts: ModelFacts) -> None:
        """Write the declarations of the model to the cache."""
        every = {
            name: [info.to_json() for info in getattr(facts, name)]
            for name in ("inputs", "outputs", "declared")
        }
        if all(None not in infos for infos in every.values()):
            _write(self._key, {**every, "held": facts.held})

    def run(self, inputs: Mapping[str, Any], models: ModelCache) -> KnownRun | None:
        """Return the run for inputs of these sizes and types, if it is in the cache."""
        key = self._key_of(inputs)
        data = None if key is None else _read(key)
        if data is None:
            return None
        began = time.perf_counter()
        if any(_digest(self._at(*place)) != digest for *place, digest in data["read"]):
            log.debug("known run %s: initializers that its trace read have changed", key)
            return None
        executable = self._backend.from_stored(data["plan"])
        if executable is None:
            return None
        own = executable.temporary_bytes + sum(each.size for each in executable.kept)
        meter().require_memory(own, "the temporary and prepared tensors of a graph")
        constants = {number: self._constant(place) for number, place, _ in data["constants"]}
        identities = {number: _identity(identity) for number, _, identity in data["constants"]}

        def fill(addresses: Sequence[int], wanted: Container[int]) -> None:
            _fill(executable, constants, addresses, wanted)

        kept = kept_memory(executable, self._backend, identities, models.shared.constants, fill)
        found = KnownRun(executable, kept, models, data)
        tell("a known run: plan %s loaded, and constants packed, in %.2f s", key, time.perf_counter() - began)
        return found

    def write_run(
        self,
        inputs: Mapping[str, Any],
        executable: Executable,
        graph: Mapping[str, Any],
        constants: Mapping[int, tuple[Array, Any]],
        read: Sequence[Array],
    ) -> bool:
        """Write a run to the cache, and return whether it is written: it may hold too much.

        Args:
            inputs: the inputs of the run.
            executable: the executable of its graph.
            graph: the inputs and outputs of the graph (`KnownRun`).
            constants: the constants that the executable reads, and their identities.
            read: the large initializers whose contents the trace has read.
        """
        key, plan = self._key_of(inputs), self._backend.stored(executable)
        places = {number: self._place(array) for number, (array, _) in constants.items()}
        stored = sum(constants[number][0].nbytes for number, place in places.items() if place is None)
        if key is None or plan is None or stored > _MOST_STORED_BYTES:
            return False
        if sum(each.nbytes for each in read) > _MOST_READ_BYTES or None in map(self._place, read):
            return False
        data = {
            **graph,
            "plan": plan,
            "constants": [
                [number, places[number] or _array_to_json(array), identity]
                for number, (array, identity) in constants.items()
            ],
            "read": [[*(self._place(each) or ()), _digest(each)] for each in read],
        }
        _write(key, data)
        return True

    def _key_of(self, inputs: Mapping[str, Any]) -> str | None:
        """Return the key of a run. None: an input is no array."""
        if not all(isinstance(each, np.ndarray) for each in inputs.values()):
            return None
        forms = [(name, each.dtype.str, each.dtype.name, each.shape) for name, each in inputs.items()]
        return hashlib.sha256(f"{self._key}\n{forms}".encode()).hexdigest()

    def _place(self, array: Array) -> list[Any] | None:
        """Return where an array lies in the bytes of the model. None: elsewhere."""
        offset = array.ctypes.data - self._base
        inside = 0 <= offset <= len(self.content) - array.nbytes
        return [offset, array.dtype.str, array.shape] if inside and array.flags.c_contiguous else None

    def _at(self, offset: int, dtype: str, sizes: Sequence[int]) -> Array:
        type, count = np.dtype(dtype), int(np.prod(sizes, dtype=np.int64))
        return np.frombuffer(self.content, np.uint8, count * type.itemsize, offset).view(type).reshape(sizes)

    def _constant(self, place: Sequence[Any]) -> Array:
        return self._at(*place) if isinstance(place[0], int) else _array_from_json(place)


def _fill(
    executable: Executable,
    constants: Mapping[int, Array],
    addresses: Sequence[int],
    wanted: Container[int],
) -> None:
    """Run the initialization steps that fill the wanted parts of the memory at `addresses`."""
    places: dict[int, dict[int, int]] = {}
    for place, each in enumerate(executable.kept):
        if place in wanted:
            places.setdefault(each.step, {})[place] = addresses[place]
    for step, filled in places.items():
        arrays = {number: constants[number] for number in executable.constants_of(step)}
        aligned = {number: array if array.flags.aligned else array.copy() for number, array in arrays.items()}
        executable.initialize(step, {number: each.ctypes.data for number, each in aligned.items()}, filled)
        for array in arrays.values():
            release(array)


class KnownRun(Locked):
    """A graph that runs over the inputs of one form.

    Args:
        executable: its executable.
        kept: the prepared constants.
        models: has the arenas.
        graph: a dict with "inputs", "outputs" (in the model's order), "kernel_steps" and "own_bytes". Each
            input and output has its name, its buffer, and the type and sizes of the graph's tensor. An output
            also has the type and sizes of the model's tensor.
    """

    def __init__(
        self,
        executable: Executable,
        kept: Sequence[PreparedMemory],
        models: ModelCache,
        graph: Mapping[str, Any],
    ) -> None:
        super().__init__()
        self._executable, self._kept, self._arenas = executable, kept, models.shared.arenas
        self._inputs = [
            (name, buffer, np.dtype(type), tuple(sizes)) for name, buffer, type, sizes in graph["inputs"]
        ]
        self._outputs = [
            (name, buffer, _maker(np.dtype(type), tuple(sizes)), np.dtype(final), tuple(shape))
            for name, buffer, type, sizes, final, shape in graph["outputs"]
        ]
        self._kernel_steps, own = graph["kernel_steps"], graph["own_bytes"]
        self.footprint = Footprint(own, frozenset(kept), executable.temporary_bytes)
        self._idle: list[Instance] = []
        self.on_forget: Callable[[], object] = lambda: None
        """Is called when the run is dropped."""

    def forget(self) -> None:
        """Drop the run."""
        self.on_forget()

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs by name."""
        meter().count("kernel_steps", self._kernel_steps, "one run")
        given = [(buffer, _packed(inputs[name], type, sizes)) for name, buffer, type, sizes in self._inputs]
        made = [(buffer, make()) for _, buffer, make, _, _ in self._outputs]
        with self._lock:
            # A handler of a signal that runs the model meanwhile finds no idle instance, and makes one.
            instance = self._idle.pop() if self._idle else self._instance()
            for buffer, array in (*given, *made):
                instance.bind(buffer, array.ctypes.data)
            instance.dispatch()
            self._idle[:] = [instance]
        return {
            name: array.reshape(shape).view(final)
            for (name, _, _, final, shape), (_, array) in zip(self._outputs, made, strict=True)
        }

    def _instance(self) -> Instance:
        addresses = [each.memory.address for each in self._kept]
        return self._executable.instantiate(None, addresses, self._arenas)


def _packed(array: Array, type: np.dtype[Any], sizes: tuple[int, ...]) -> Array:
    """Return an input as a packed tensor of the graph, in memory that is aligned to its elements."""
    if array.dtype != type or not array.flags.c_contiguous or array.shape != sizes:
        array = np.ascontiguousarray(array).reshape(sizes).view(type)
    return array if array.flags.aligned else array.copy()


_ALIGNED_BYTES = 2**16


def _maker(type: np.dtype[Any], sizes: tuple[int, ...]) -> Callable[[], Array]:
    """Return a function that makes outputs, which are aligned to 64 bytes if they are large."""
    size = int(np.prod(sizes, dtype=np.int64)) * type.itemsize
    if size < _ALIGNED_BYTES:
        return lambda: np.empty(sizes, type)
    return lambda: aligned_bytes(np.empty, size).view(type).reshape(sizes)


def _identity(identity: Any) -> Any:
    """Return the identity of a constant as the tracer has it: a name or a digest, the type, and the sizes."""
    if identity is None:
        return None
    name, type, sizes = identity
    return (name if isinstance(name, str) else bytes.fromhex(name[0])), type, tuple(sizes)


def identity_to_json(identity: Any) -> Any:
    """Return an identity as JSON. None: other runs cannot know it."""
    name, *form = identity if isinstance(identity, tuple) and len(identity) == 3 else (None,)
    if isinstance(name, bytes):
        return [[name.hex()], *form]
    return [name, *form] if isinstance(name, str) else None


def _array_to_json(array: Array) -> list[Any]:
    return ["array", array.dtype.str, array.shape, base64.b64encode(array.tobytes()).decode()]


def _array_from_json(data: Sequence[Any]) -> Array:
    _, type, sizes, content = data
    return np.frombuffer(base64.b64decode(content), np.dtype(type)).reshape(sizes)


def _digest(array: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).hexdigest()


def _digest_without_data(content: Content) -> str:
    """Return a digest of a model's bytes, but for the data of large initializers; of other bytes, of all."""
    view, digest, behind = memoryview(content), hashlib.sha256(), 0
    try:
        for begin, end in _large_data(view):
            digest.update(view[behind:begin])
            behind = end
    except (LookupError, ValueError):
        digest, behind = hashlib.sha256(), 0
    digest.update(view[behind:])
    return digest.hexdigest()


def _large_data(view: memoryview) -> list[tuple[int, int]]:
    """Return the begin and end of the data of large initializers."""

    def numbered(begin: int, end: int, number: int) -> list[tuple[int, int]]:
        found = []
        for each in fields(view, begin, end):
            if each[1] in GROUP_MARKS:
                raise ValueError("a group")
            if each[0] == number and each[1] == LENGTH_DELIMITED:
                found.append(each[3:])
        return found

    found = []
    for graph in islice(numbered(0, len(view), _GRAPH_OF_MODEL), 2):
        for begin, end in numbered(*graph, _INITIALIZER_OF_GRAPH):
            if end - begin >= LARGE_BYTES:
                data = numbered(begin, end, _RAW_DATA_OF_TENSOR)
                found += [each for each in data if each[1] - each[0] >= LARGE_BYTES]
    return found


@cache
def _versions() -> str:
    """Return the versions of all that a trace depends on."""
    package = find_spec("onnx")
    origin = package.origin if package is not None else None
    status = os.stat(origin) if origin else None
    stamp = () if status is None else (origin, status.st_size, status.st_mtime_ns)
    return f"{sources_stamp()} {stamp} {np.__version__}"


def _read(key: str) -> dict[str, Any] | None:
    content = read_object(key, _KIND)
    return None if content is None else json.loads(content)


def _write(key: str, data: Mapping[str, Any]) -> None:
    write_object(key, json.dumps(data, separators=(",", ":")).encode(), _KIND)
