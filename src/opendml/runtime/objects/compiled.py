"""Compiled operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from opendml.across_forks import cached_property, importing
from opendml.errors import InvalidArgument
from opendml.locked import Locked
from opendml.program.program import Layout, packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.described import fields_text, signature
from opendml.runtime.graphs.compilable import Compilable
from opendml.runtime.graphs.compiled_work import CompiledWork
from opendml.runtime.memory.host_array import Array
from opendml.runtime.memory.ranges import MemoryRange, as_bytes, check_overlap, common_place, require_device
from opendml.runtime.objects.bound import BoundOperator
from opendml.runtime.objects.dispatchable import BindingProperties, Bindings, Command, Dispatchable
from opendml.runtime.objects.tensor_fields import TensorField, bound_ranges
from opendml.spec.enums import ExecutionFlags
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.wording import join
from opendml.targets.executable import Instance
from opendml.targets.memory import HostMemory, Place, TensorMemory

if TYPE_CHECKING:
    from opendml.runtime.explain.explanation import ExplainedGraph
    from opendml.runtime.objects.device import Device


class CompiledOperator(Dispatchable, Locked):
    """A compiled operator or graph. It is safe to use from several threads; what `bind` returns is not.

    DirectML demands that a compiled operator is initialized once before a command recorder executes it, even
    without OWNED_BY_DML tensors. `bind` needs no initializer: it reads the OWNED_BY_DML tensors itself.
    """

    def __init__(self, device: Device, compilable: Compilable, flags: ExecutionFlags) -> None:
        Locked.__init__(self)
        self.device, self._kind, self.flags = device, compilable.name, flags
        self._is_volatile = bool(flags & ExecutionFlags.DESCRIPTORS_VOLATILE)
        self._initialization: object = None
        """The identity of the initialization that has run. It does not keep that one's tensors alive."""
        self._persistent: MemoryRange | None = None
        """The persistent resource that the initializer has written, if it has bytes."""
        self._inputs, self._outputs = compilable.inputs, compilable.outputs
        self._in_place, self._compilable = compilable.in_place, compilable
        self._work = CompiledWork(compilable.work, device)
        self._buffers = compilable.buffers
        """Positions of inputs that are present to buffers of the program."""
        self._owned = [number for number in self._buffers if compilable.inputs[number].is_owned]
        self._constants = {buffer: _content(array) for buffer, array in compilable.constants.items()}
        self._first_output = len(compilable.work.inputs)
        if not self._owned:
            self._own_persistent = self._work.prepare(self._constants)
            self._constants = {}

    def __repr__(self) -> str:
        what = signature(fields_text(self._inputs), fields_text(self._outputs))
        return f"<CompiledOperator {self.device.kind}: {self._title}: {what}>"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the operator or the graph, its constants and the kind of its device to a file.

        `opendml.load` compiles the file on any machine. Persistent resources are left out.

        Raises:
            InvalidArgument: the file cannot be written.
        """
        with importing:
            from opendml.runtime.saved.write import write_file
        write_file(path, self._saved())

    def _saved(self) -> bytes:
        with importing:
            from opendml.runtime.saved.write import saved_graph
        return saved_graph(self._compilable.data, self.device, self.flags)

    def __deepcopy__(self, memo: object) -> CompiledOperator:
        """Compile the same for the same device."""
        return CompiledOperator(self.device, self._compilable, self.flags)

    @property
    def is_initialized(self) -> bool:
        """True if an initializer has run."""
        return self._initialization is not None

    @property
    def input_tensors(self) -> list[TensorDesc | None]:
        """The TensorDescs of the inputs, None for absent ones."""
        return [field.tensor for field in self._inputs]

    @property
    def output_tensors(self) -> list[TensorDesc | None]:
        """The TensorDescs of the outputs, None for absent ones."""
        return [field.tensor for field in self._outputs]

    @cached_property
    def binding_properties(self) -> BindingProperties:
        """The descriptors, and the bytes of temporary and persistent resources, that an execution needs."""
        temporary = self._work.temporary_bytes
        persistent = self._work.persistent_bytes if self._owned else 0
        tensors = len(self._inputs) + len(self._outputs)
        return BindingProperties(tensors + bool(temporary) + bool(persistent), temporary, persistent)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> BoundOperator:
        """Bind the operator to memory.

        Args:
            inputs: memory for each input tensor in the desc's order, None for an absent one. It is a NumPy
                array, an object with the buffer protocol, an array of any library on the operator's CUDA
                device, or a BufferBinding. An array has the tensor's type or is raw bytes (uint8). It has the
                strides of the TensorDesc, or any shape in row-major order. On "cuda", every dispatch copies
                buffers in host memory there and back. Tensors with OWNED_BY_DML are copied now, and their
                buffers are free again.
            outputs: memory for the output tensors.

        Raises:
            InvalidArgument: a missing, extra, small, misaligned, read-only or overlapping buffer, one of
                another type or layout, or buffers that are not in the same memory.
            DeviceRemoved: the device was removed.
        """
        self.device._require_present()
        given = bound_ranges(self._title, "inputs", self._inputs, inputs)
        written = bound_ranges(self._title, "outputs", self._outputs, outputs)
        self._check_overlap(given, Bindings(outputs=written))
        rest = [None if field.is_owned else memory for field, memory in zip(self._inputs, given, strict=True)]
        place = self._place(rest, written)
        persistent = self._prepare(given) if self._owned else None
        bindings = Bindings(rest, written, persistent=persistent)
        return BoundOperator(self.device, self._instance(place, bindings), self._title)

    def explain(self) -> ExplainedGraph:
        """Measure the kernels of the operator, as `Model.explain` does.

        Inputs are floats between 0 and 1, or integers that are 0. OWNED_BY_DML tensors are zeros.

        Raises:
            Unsupported: it is of a debug device, or memory is out.
        """
        with importing:
            from opendml.runtime.explain.measure import explained
        self.device._require_present()
        names = {buffer: self._inputs[number].name for number, buffer in self._buffers.items()}
        others = [buffer for buffer in range(self._first_output) if buffer not in names]
        names |= {buffer: f"constant {number}" for number, buffer in enumerate(others)}
        persistent = None if self._owned else self._own_persistent
        title = f"{self._title}: {signature(fields_text(self._inputs), fields_text(self._outputs))}"
        return explained(self.device, self._work, persistent, title, names, {})

    def _input_ranges(self, bindings: Sequence[Any]) -> list[MemoryRange | None]:
        """Return the memory of the inputs of an execution, without OWNED_BY_DML tensors."""
        return bound_ranges(self._title, "inputs", self._inputs, bindings, owned=False)

    def _output_ranges(self, bindings: Sequence[Any]) -> list[MemoryRange | None]:
        """Return the memory of the outputs."""
        return bound_ranges(self._title, "outputs", self._outputs, bindings)

    def _owned_ranges(self, bindings: Sequence[Any]) -> list[MemoryRange | None]:
        """Return the memory of the OWNED_BY_DML tensors of an initialization.

        Raises:
            InvalidArgument: bindings that do not fit.
        """
        return bound_ranges(self._title, "inputs", self._inputs, bindings, owned=True)

    def _command(self, bindings: Bindings) -> Command:
        """Return an execution with these bindings."""
        if bindings.inputs is None and all(field.tensor is None or field.is_owned for field in self._inputs):
            bindings = replace(bindings, inputs=[None] * len(self._inputs))
        if bindings.inputs is None or bindings.outputs is None:
            missing = "inputs" if bindings.inputs is None else "outputs"
            raise InvalidArgument(f"{self._title}: no {missing} are bound")
        needed = self.binding_properties
        owned = join([self._inputs[number].name for number in self._owned], "and") if self._owned else ""
        problems = [
            f"{self._title}: no {resource} resource is bound; {size} bytes are needed{hint}"
            for resource, memory, size, hint in (
                ("temporary", bindings.temporary, needed.temporary_resource_size, ""),
                (
                    "persistent",
                    bindings.persistent,
                    needed.persistent_resource_size,
                    f", which an operator initializer writes from {owned} (OWNED_BY_DML)",
                ),
            )
            if size and memory is None
        ]
        if problems:
            raise InvalidArgument(problems)
        self._check_overlap(bindings.inputs, bindings)
        place = self._place(bindings.inputs, bindings.outputs)
        bound = BoundOperator(self.device, self._instance(place, bindings), self._title)
        return _Execution(self, bindings, bound)

    def _initialize(
        self, initialization: object, owned: Sequence[MemoryRange | None], persistent: MemoryRange | None
    ) -> None:
        """Prepare the constants in the persistent resource, which nothing else may change.

        Raises:
            InvalidArgument: another initialization has run.
        """
        with self._lock:
            self._require_initializable(initialization)
            if persistent is not None:
                self._prepare(owned, persistent)
                # A handler of a signal may have initialized it meanwhile.
                self._require_initializable(initialization)
            self._persistent = persistent
            self._initialization = initialization

    def _require_initializable(self, initialization: object) -> None:
        """Check that no other initialization has run.

        DirectML allows one initialization. A recorded one may be executed again, as command lists may be.

        Raises:
            InvalidArgument: one has.
        """
        if self._initialization not in (None, initialization):
            raise InvalidArgument(
                f"{self._title}: is initialized already; only the recorder that did it may do it again"
            )

    def _prepare(
        self, inputs: Sequence[MemoryRange | None], persistent: MemoryRange | None = None
    ) -> MemoryRange:
        """Prepare the OWNED_BY_DML tensors and all constants, in new memory unless some is given."""
        constants = dict(self._constants)
        for number in self._owned:
            memory, layout = inputs[number], self._inputs[number].layout
            assert memory is not None
            assert layout is not None
            constants[self._buffers[number]] = TensorMemory(
                memory.address, layout, False, memory.owner, memory.place
            )
        return self._work.prepare(constants, persistent)

    def _check_overlap(self, inputs: Sequence[MemoryRange | None], bindings: Bindings) -> None:
        reads = [_named(field, memory) for field, memory in zip(self._inputs, inputs, strict=True)]
        outputs = bindings.outputs or []
        writes = [_named(field, memory) for field, memory in zip(self._outputs, outputs, strict=True)]
        reads.append(as_bytes("the persistent resource", bindings.persistent))
        writes.append(as_bytes("the temporary resource", bindings.temporary))
        check_overlap(self._title, reads, [item for item in writes if item], self._in_place)

    def _place(
        self, inputs: Sequence[MemoryRange | None], outputs: Sequence[MemoryRange | None]
    ) -> Place | None:
        """Return the memory that all tensors are in; None: the host's."""
        fields = (*self._inputs, *self._outputs)
        places = [
            (field.name, memory.place)
            for field, memory in zip(fields, (*inputs, *outputs), strict=True)
            if memory is not None
        ]
        place = common_place(self._title, places)
        require_device(self._title, places[0][0], place, self.device)
        return place

    def _instance(self, place: Place | None, bindings: Bindings) -> Instance:
        persistent = bindings.persistent if self._owned else self._own_persistent
        instance = self._work.instantiate(place, persistent, bindings.temporary)
        for number, memory in enumerate(bindings.inputs or []):
            if memory is not None:
                instance.bind(self._buffers[number], memory.address)
        written = [memory for memory in bindings.outputs or [] if memory is not None]
        for buffer, memory in enumerate(written, self._first_output):
            instance.bind(buffer, memory.address)
        # The instance may outlive this object.
        instance.keep((bindings, persistent))
        return instance


class _Execution(Command):
    """An execution of a compiled operator."""

    def __init__(self, compiled: CompiledOperator, bindings: Bindings, bound: BoundOperator) -> None:
        self._compiled, self._bindings, self._bound = compiled, bindings, bound

    def check(self, initialized: dict[CompiledOperator, MemoryRange | None], stream: int | None) -> None:
        compiled = self._compiled
        if stream is not None and not self._bound.takes_streams:
            raise InvalidArgument(
                f"{compiled._title}: the tensors are in host memory; "
                "streams are for arrays in the memory of a device"
            )
        if not compiled.is_initialized and compiled not in initialized:
            raise InvalidArgument(
                f"{compiled._title}: is not initialized; execute an operator initializer for it first "
                "(device.create_operator_initializer([compiled]))"
            )
        written, bound = initialized.get(compiled, compiled._persistent), self._bindings.persistent
        if written and (not bound or (bound.address, bound.place) != (written.address, written.place)):
            raise InvalidArgument(
                f"{compiled._title}: another persistent resource is bound than the initializer has written"
            )

    def run(self, stream: int | None) -> None:
        if stream is None:
            self._bound.dispatch()
        else:
            self._bound.enqueue(stream)


def _content(array: Array) -> TensorMemory:
    """Copy bytes to aligned memory."""
    memory = HostMemory(array.size)
    memory.bytes[:] = array
    return TensorMemory(memory.address, packed(ScalarType.UINT8, [array.size]), False, memory)


def _named(field: TensorField, memory: MemoryRange | None) -> tuple[str, MemoryRange, Layout] | None:
    return None if memory is None or field.layout is None else (field.name, memory, field.layout)
