"""Programs of `torch.export`, loaded without tracing them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    OutputKind,
    TensorArgument,
)
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_flatten, tree_unflatten

from opendml.errors import InvalidArgument, NoSuchFile
from opendml.frontends.torch.backend import chosen_options, compiled_graph
from opendml.frontends.torch.decompositions import decompositions
from opendml.spec.wording import counted, shown

_KINDS = {
    InputKind.PARAMETER: "parameters",
    InputKind.BUFFER: "buffers",
    InputKind.CONSTANT_TENSOR: "constants",
    InputKind.USER_INPUT: "inputs",
}
_RESULTS = {OutputKind.USER_OUTPUT, OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION}


class TorchProgram:
    """A program of `torch.export` that is compiled with opendml.

    It is called as the exported module, with tensors of the exported types. Results have no gradients. One
    program runs one call at a time.

    Attributes:
        state: the parameters, buffers and constants by name. A call writes the buffers that the module
            writes, which are copies of those of the exported program. Others are shared with it. Tensors can
            be written (`copy_`), but not exchanged: the compiled code relies on their types and sizes.

    Args:
        program: the exported program.
        options: as of `load`, all by name.

    Raises:
        InvalidArgument: the program has inputs, outputs or nodes of a kind that cannot be compiled.
    """

    def __init__(self, program: ExportedProgram, options: Mapping[str, Any]) -> None:
        with sdpa_kernel(SDPBackend.MATH):
            program = program.run_decompositions(decompositions())
        signature = program.graph_signature
        _require_kinds(signature)
        module = _without_checks(program.graph_module)
        nodes = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._inputs, self._outputs = signature.input_specs, signature.output_specs
        self._in_spec, self._out_spec = program.call_spec.in_spec, program.call_spec.out_spec
        self._values = [node.meta.get("val") for node in nodes]
        self._ranges = program.range_constraints
        constants = {name: each for name, each in program.constants.items() if isinstance(each, torch.Tensor)}
        state: dict[str, torch.Tensor] = {**constants, **program.state_dict}
        written = {each.target for each in self._outputs if each.kind is OutputKind.BUFFER_MUTATION}
        state |= {name: state[name].detach().clone() for name in written}
        self.state: Mapping[str, torch.Tensor] = MappingProxyType(state)
        held = [
            number
            for number, spec in enumerate(self._inputs)
            if spec.kind is not InputKind.USER_INPUT and spec.target not in written
        ]
        self._run = compiled_graph("inference", module, held=held, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the results for inputs as those of the exported module.

        Raises:
            InvalidArgument: other arguments, types or sizes than the program was exported for.
        """
        user = self._flattened(args, kwargs)
        remaining = iter(user)
        given = [
            next(remaining) if spec.kind is InputKind.USER_INPUT else self.state[spec.target]
            for spec in self._inputs
        ]
        self._require_fitting(given)
        by_name = {spec.arg.name: each for spec, each in zip(self._inputs, given, strict=True)}
        with torch.no_grad():
            results = self._run(list(given))
            outputs = []
            for spec, result in zip(self._outputs, results, strict=True):
                if spec.kind is OutputKind.USER_OUTPUT:
                    outputs.append(spec.arg.value if isinstance(spec.arg, ConstantArgument) else result)
                elif spec.kind is OutputKind.BUFFER_MUTATION:
                    self.state[spec.target].copy_(result)
                else:
                    by_name[spec.target].copy_(result)
        return tree_unflatten(outputs, self._out_spec)

    def _flattened(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the arguments of a call in the order of the program's own inputs.

        Raises:
            InvalidArgument: other keywords, or another structure than the program was exported for.
        """
        names = self._in_spec.child(1).context
        if sorted(kwargs) != sorted(names):
            raise InvalidArgument(f"torch.load: keywords {sorted(kwargs)}; must be {sorted(names)}")
        flat: list[Any]
        flat, spec = tree_flatten((tuple(args), {name: kwargs[name] for name in names}))
        if spec != self._in_spec:
            given, needed = (" ".join(str(each).split()) for each in (spec, self._in_spec))
            count = counted(self._in_spec.child(0).num_children, "argument is", "arguments are")
            raise InvalidArgument(f"torch.load: arguments of structure {given}; {count} needed: {needed}")
        return flat

    def _require_fitting(self, given: Sequence[Any]) -> None:
        """Check the inputs of a call.

        Raises:
            InvalidArgument: an input has another type, or sizes that the program does not serve.
        """
        sizes: dict[Any, int] = {}
        derived: list[tuple[str, int, Any]] = []
        for spec, value, tensor in zip(self._inputs, self._values, given, strict=True):
            if spec.kind is not InputKind.USER_INPUT:
                continue
            label = f"torch.load: input {spec.arg.name!r}"
            if isinstance(spec.arg, ConstantArgument):
                wanted = spec.arg.value
                if not isinstance(tensor, type(wanted)) or tensor != wanted:
                    raise InvalidArgument(f"{label} is {shown(tensor)}; was exported for {shown(wanted)}")
                continue
            if isinstance(value, torch.SymInt):
                if type(tensor) is not int:
                    raise InvalidArgument(f"{label} is {shown(tensor)}; a whole number is needed")
                self._require_size(f"{label} is {tensor}", tensor, value, sizes, derived)
            if not isinstance(spec.arg, TensorArgument):
                continue
            if not isinstance(tensor, torch.Tensor):
                raise InvalidArgument(f"{label} is {type(tensor).__name__}; a tensor is needed")
            if tensor.dtype is not value.dtype or tensor.device.type != value.device.type:
                needed = f"{value.dtype} on {value.device} is needed"
                raise InvalidArgument(f"{label} is {tensor.dtype} on {tensor.device}; {needed}")
            if tensor.dim() != value.dim():
                raise InvalidArgument(f"{label} has {tensor.dim()} dimensions; {value.dim()} are needed")
            for axis, (size, known) in enumerate(zip(tensor.shape, value.shape, strict=True)):
                self._require_size(f"{label}: size {size} of dimension {axis}", size, known, sizes, derived)
        for label, size, expression in derived:
            _require_derived(label, size, expression, sizes)

    def _require_size(
        self, label: str, size: int, known: Any, sizes: dict[Any, int], derived: list[tuple[str, int, Any]]
    ) -> None:
        """Check a size against what the program was exported for.

        Args:
            label: the size with its input, for errors.
            size: the size.
            known: the size in the program: a number, a symbol, or an expression of symbols.
            sizes: the sizes of symbols so far; a new symbol is added.
            derived: receives sizes that are expressions. They are checked when all symbols have sizes.

        Raises:
            InvalidArgument: the program does not serve the size.
        """
        if isinstance(known, int):
            if size != known:
                raise InvalidArgument(f"{label}; was exported for {known}")
            return
        expression = known.node.expr
        allowed = self._ranges.get(expression)
        if allowed is not None and not allowed.lower <= size <= allowed.upper:
            raise InvalidArgument(f"{label}; must be within [{allowed.lower}, {allowed.upper}]")
        if not expression.is_Symbol:
            derived.append((label, size, expression))
        elif sizes.setdefault(expression, size) != size:
            raise InvalidArgument(f"{label}; must be {sizes[expression]}, as of other inputs")


def _require_kinds(signature: ExportGraphSignature) -> None:
    """Raise InvalidArgument if a program has an input or an output of a kind that cannot be run."""
    for spec in signature.input_specs:
        if spec.kind not in _KINDS:
            kinds = ", ".join(_KINDS.values())
            raise InvalidArgument(f"torch.load: {spec.arg} is of kind {spec.kind.name}; can be {kinds}")
    for result in signature.output_specs:
        if result.kind not in _RESULTS:
            kinds = ", ".join(sorted(each.name for each in _RESULTS))
            raise InvalidArgument(f"torch.load: an output is of kind {result.kind.name}; can be {kinds}")


def _require_derived(label: str, size: int, expression: Any, sizes: dict[Any, int]) -> None:
    """Check a size that follows from symbols. A symbol that no input has by itself follows from the size."""
    unknown = sorted(expression.free_symbols - sizes.keys(), key=str)
    if len(unknown) == 1:
        start, following = (int(expression.subs({**sizes, unknown[0]: each})) for each in (0, 1))
        found, rest = divmod(size - start, following - start)  # PyTorch derives sizes by linear terms.
        if rest:
            raise InvalidArgument(f"{label}; must be {expression} with a whole number {unknown[0]}")
        sizes[unknown[0]] = found
    elif not unknown and expression.subs(sizes) != size:
        raise InvalidArgument(f"{label}; must be {expression.subs(sizes)}, which follows from other sizes")


def load(
    program: ExportedProgram | str | PathLike[str],
    *,
    freezing: bool = True,
    check_indices: bool = False,
    most_kept_bytes: int | None = None,
) -> TorchProgram:
    """Compile a program of `torch.export`.

    >>> import torch, opendml as dml
    >>> rows = torch.export.Dim("rows", max=64)
    >>> net = torch.nn.Linear(3, 2)
    >>> exported = torch.export.export(net, (torch.ones(4, 3),), dynamic_shapes=({0: rows},))
    >>> program = dml.torch.load(exported)
    >>> x = torch.ones(7, 3)
    >>> torch.allclose(program(x), net(x), atol=1e-6)
    True

    Args:
        program: the program, or the path of a file that `torch.export.save` has written. Load files of people
            whom you trust: PyTorch reads them.
        freezing: whether parameters, and buffers that the program does not write, are read once. If the
            tensors of `state` are written, they are read again.
        check_indices: whether indices out of range raise an error.
        most_kept_bytes: as of `torch.compile`.

    Raises:
        InvalidArgument: no such program, or one with inputs or outputs of a kind that cannot be run.
        NoSuchFile: there is no such file.
        Error: it cannot be compiled.
    """
    chosen = {"freezing": freezing, "check_indices": check_indices, "most_kept_bytes": most_kept_bytes}
    options = chosen_options(None, chosen)
    if isinstance(program, str | PathLike):
        path = Path(program)
        if not path.exists():
            raise NoSuchFile(f"torch.load: there is no file {str(path)!r}")
        try:
            program = torch.export.load(path)
        except Exception as error:  # whatever PyTorch raises
            raise InvalidArgument(
                f"torch.load: {str(path)!r} is no program of torch.export ({error})"
            ) from error
    if not isinstance(program, ExportedProgram):
        needed = "a program of torch.export.export, or the path of one, is needed"
        raise InvalidArgument(f"torch.load: {type(program).__name__}; {needed}")
    return TorchProgram(program, options)


def _without_checks(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Remove nodes that check values and sizes, which `TorchProgram` checks where it can."""
    for node in reversed(module.graph.nodes):
        if node.op == "call_module" or "_assert" in str(node.target) or "sym_constrain" in str(node.target):
            if node.users or (node.op == "call_module" and "guards" not in str(node.target)):
                raise InvalidArgument(
                    f"torch.load: the program calls {node.target}, which cannot be compiled"
                )
            module.graph.erase_node(node)
        elif isinstance(node.target, torch._ops.HigherOrderOperator):
            raise InvalidArgument(f"torch.load: the program calls {node.target}, which cannot be compiled")
    module.graph.eliminate_dead_code()
    module.recompile()
    return module
