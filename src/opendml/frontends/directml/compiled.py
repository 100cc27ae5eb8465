"""What graphs are compiled to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opendml.frontends.directml.buffers import Buffer, downloaded, reserved
from opendml.frontends.directml.call import truth
from opendml.frontends.directml.inputs import Data, Input
from opendml.frontends.directml.sizes import Sizes
from opendml.frontends.directml.tensors import Expression
from opendml.frontends.pydirectml.devices import Device
from opendml.frontends.pydirectml.errors import Refused, refused
from opendml.runtime.locked import Locked
from opendml.runtime.objects.binding import BufferArrayBinding
from opendml.runtime.objects.compiled import CompiledOperator as Compiled
from opendml.runtime.objects.dispatchable import Dispatchable

Bindings = Mapping[Any, Data]
"""Inputs, or their names, and what is bound to them."""


class CompiledOperator(Sizes, Locked):
    """A compiled graph: calling it is dispatching it. `Graph.compile` makes it. Dispatches of several threads
    take turns."""

    def __init__(
        self,
        device: Device,
        inputs: dict[Expression, Input],
        constants: dict[int, Data],
        count: int,
        compiled: Callable[[], Compiled],
    ) -> None:
        super().__init__()
        self._device, self._compile, self._inputs = device, compiled, inputs
        self._count = count
        """How many outputs were asked for: those behind them are needed by operators only."""
        self._names = {each.name: each for each in inputs.values() if each.name is not None}
        self._compiled, self._constants = compiled(), constants
        self._persistent: Any = None
        self._temporary: Any = None
        if all(each.index in constants for each in inputs.values() if each.is_owned):
            self.initialize()

    def __repr__(self) -> str:
        return f"<dml.CompiledOperator of {self._compiled!r}>"

    @property
    def initialized(self) -> bool:
        """Whether it has all that is handed over at initialization."""
        return self._compiled.is_initialized

    def initialize(self, weights: Bindings | None = None) -> None:
        """Hands over the inputs that are owned. Done again, it wants all of them again.

        Args:
            weights: the data by the inputs or their names: arrays, or buffers. Constants may be left out the
                first time.

        Raises:
            ValueError: no such input, one that is not owned, is bound twice or is missing, or data of another
                type or size.
        """
        memory = self._bound(weights, "initialize", owned=True)
        device = self._device._device
        with refused(), self._lock:
            compiled = self._compile() if self.initialized else self._compiled
            initializer = device.create_operator_initializer([compiled])
            size = compiled.binding_properties.persistent_resource_size
            persistent = device.create_buffer(size) if size else None
            self._execute(initializer, [BufferArrayBinding(_given(compiled, memory))], [persistent])
            self._compiled, self._persistent, self._constants = compiled, persistent, {}

    def dispatch(self, inputs: Bindings | None = None, *, readback: bool = True) -> list[Any]:
        """The outputs, in the order of `compile`.

        Args:
            inputs: the data by the inputs or their names, for all that are not owned: arrays, which are cast
                as NumPy calls it safe and narrowed within a kind, or buffers, which are read where they are.
            readback: True: arrays; False: buffers, which stay in the memory of the device.

        Raises:
            ValueError: it is not initialized; no such input, one that is owned, is bound twice or is missing,
                or data of another type or size.
        """
        if not self.initialized:
            owned = ", ".join(str(each) for each in self._inputs.values() if each.is_owned)
            raise Refused(f"not initialized; initialize() takes {owned}")
        memory = self._bound(inputs, "dispatch", owned=False)
        device, tensors = self._device._device, [each for each in self._compiled.output_tensors if each]
        results = [reserved(device, each) for each in tensors]
        with refused(), self._lock:
            # A dispatch within this one, by a handler of a signal, finds none and makes its own.
            temporary, self._temporary = self._temporary, None
            if temporary is None and self.temporary_size:
                temporary = device.create_buffer(self.temporary_size)
            self._execute(
                self._compiled, _given(self._compiled, memory), results, temporary, self._persistent
            )
            self._temporary = temporary
        pairs = list(zip(tensors, results, strict=True))[: self._count]
        if truth(readback, "dispatch.readback"):
            return [downloaded(device, tensor, data) for tensor, data in pairs]
        return [Buffer._of(self._device, tensor, data) for tensor, data in pairs]

    __call__ = dispatch

    def _execute(
        self,
        dispatchable: Dispatchable,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        temporary: Any = None,
        persistent: Any = None,
    ) -> None:
        device = self._device._device
        table = device.create_binding_table(dispatchable)
        table.bind_inputs(inputs)
        table.bind_outputs(outputs)
        table.bind_temporary_resource(temporary)
        table.bind_persistent_resource(persistent)
        recorder = device.create_command_recorder()
        recorder.record_dispatch(dispatchable, table)
        device.execute(recorder)

    def _bound(self, given: Bindings | None, verb: str, *, owned: bool) -> dict[int, Any]:
        """The memory of the inputs that are, or are not, owned, by their numbers. All is checked first."""
        values: dict[int, Data] = {}
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"{verb}: {type(given).__name__}; a dict of inputs, or their names, is needed")
        for key, value in (given or {}).items():
            found = self._input(key, verb)
            if found.is_owned is not owned:
                problem = "owned; initialize" if found.is_owned else "not owned; dispatch"
                raise Refused(f"{verb}: {found} is {problem} takes it")
            if found.index in values:
                raise Refused(f"{verb}: {found} is bound twice")
            values[found.index] = value
        wanted = [each for each in self._inputs.values() if each.is_owned is owned]
        if owned:
            values = self._constants | values
        missing = ", ".join(str(each) for each in wanted if each.index not in values)
        if missing:
            raise Refused(f"{verb}: missing {missing}")
        return {each.index: each.memory(values[each.index], self._device, stays=owned) for each in wanted}

    def _input(self, key: Any, verb: str) -> Input:
        """The input that a key of bindings stands for."""
        if isinstance(key, str):
            if key not in self._names:
                raise Refused(f"{verb}: this graph has no input named {key!r}")
            return self._names[key]
        if not isinstance(key, Expression):
            raise TypeError(f"{verb}: {type(key).__name__}; an input, or its name, is needed")
        if key not in self._inputs:
            raise Refused(f"{verb}: {key!r} is not an input of this graph")
        return self._inputs[key]


def _given(compiled: Compiled, memory: Mapping[int, Any]) -> list[Any]:
    """Memory for each input that the compiled graph reads."""
    return [
        None if tensor is None else memory.get(number) for number, tensor in enumerate(compiled.input_tensors)
    ]
