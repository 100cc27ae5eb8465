"""The interface of compiled programs to the runtime, the same for all targets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from numpy import ndarray

if TYPE_CHECKING:
    from opendml.compiler.kernel import KernelProgram
    from opendml.program.program import Program
    from opendml.targets.arenas import Arenas
    from opendml.targets.kept import Kept


class Runnable(Protocol):
    """Work with the memory that it is bound to."""

    @property
    def dispatch(self) -> Callable[[], object]:
        """Runs the work, and returns when the results are complete."""

    @property
    def enqueue(self) -> Callable[[int], object] | None:
        """Adds the work to the stream with a handle. None if it runs over host memory."""


class Instance(Runnable, Protocol):
    """A program with its own state, ready to run: one dispatch at a time."""

    def bind(self, buffer: int, address: int, /) -> None:
        """Set the address of a tensor's first element: inputs first, then outputs."""

    def keep(self, memory: object) -> None:
        """Keep an object alive as long as `dispatch`, which callers may hold without the instance."""


class SizedInstance(Instance, Protocol):
    """An instance of a program with traced sizes, which may change between two dispatches."""

    values: ndarray[Any, Any] | None
    """The values that it has now. None: they are not complete."""

    def resize(self, values: ndarray[Any, Any], /) -> None:
        """Use other values. The first ones are those of `TracedExecutable.sizes`; others are ignored."""


class Executable(Protocol):
    """A compiled program, over memory where it runs."""

    @property
    def temporary_bytes(self) -> int:
        """Memory that each instance needs beside the tensors."""

    @property
    def kept(self) -> Sequence[Kept]:
        """Memory made of the program's constants that dispatches read. All instances may share it."""

    def constants_of(self, step: int) -> Collection[int]:
        """Return the numbers of the constants that a step of the initialization reads."""

    def initialize(self, step: int, constants: Mapping[int, int], addresses: Mapping[int, int]) -> None:
        """Run one step of the initialization after all earlier work on the device, and wait for it.

        The constants are not read afterwards. Memory that is a copy of a constant (`Kept.copied_from`) has no
        step: the caller fills it.

        Args:
            step: the number of the step, as in `kept`.
            constants: for each constant that the step reads, by its number, the address of its first element
                where the program runs.
            addresses: for each memory that the step fills, by its position in `kept`, its address.
        """

    def instantiate(
        self, arena: int | None = None, kept: Sequence[int] = (), arenas: Arenas | None = None
    ) -> Instance:
        """Return a new instance, with nothing bound but its constants.

        Args:
            arena: the address of `temporary_bytes` bytes where the program runs. No other instance may use
                them during a dispatch. None: the instance allocates them.
            kept: the addresses of all memory in `kept`. It must be filled before the first dispatch, and live
                as long as the instance.
            arenas: arenas from which the instance may take one for each dispatch. On a device with streams it
                may allocate in the order of a stream instead. None: the instance has an arena of its own.
        """


class TracedExecutable(Executable, Protocol):
    """A compiled program with traced sizes."""

    @property
    def sizes(self) -> Sequence[int]:
        """The traced sizes that its launches and its memory depend on."""

    def at(self, values: ndarray[Any, Any]) -> Executable:
        """Return the executable for given values of `sizes`, which shares code and constants."""

    @property
    def sized_instances(self) -> int:
        """The number of instances for sizes that come again between others, at most."""

    def sized_instance(
        self, kept: Sequence[int], arenas: Arenas | None, on_stream: bool = False
    ) -> SizedInstance:
        """Return a new instance whose sizes may change.

        Args:
            kept, arenas: those of `instantiate`.
            on_stream: whether it is for streams of a device; otherwise it is over host memory.
        """


class TracedProgram(Protocol):
    """A program with traced sizes, as kernels. It is compiled for one bucket of sizes after another."""

    @property
    def program(self) -> Program:
        """The program, perhaps without its results."""

    @property
    def kernels(self) -> KernelProgram:
        """The kernels into which it is cut."""

    @property
    def image_dimensions(self) -> frozenset[str]:
        """The dimensions of images whose height and width both vary, if plans for one size of images pay."""

    def at(self, sizes: Mapping[str, int]) -> TracedProgram:
        """Return the program for plain numbers of some dimensions, whose results have the same bits.

        Args:
            sizes: a plain number or a traced size for each dimension.
        """

    def compile(self) -> TracedExecutable | None:
        """Choose schedules for the hints of the trace, and construct launches with traced sizes.

        Guards are recorded by the trace.

        Returns:
            None: the device compiles this program for exact sizes alone.
        """
