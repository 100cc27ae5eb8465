"""Cases of benchmarks as compiled graphs: their inputs are x0, x1 and so on, their results y0, y1 and so on.

opendml is imported late, when the number of threads is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opendml import GraphTensor, Model


def compiled(
    arrays: Sequence[Any],
    function: Callable[..., Any],
    device: str,
    constants: Sequence[Any] = (),
    has_views: bool = False,
) -> tuple[Model, dict[str, GraphTensor]]:
    """What `function` makes of arrays, of NumPy or PyTorch, and of constants behind them; with its results,
    but for those that are None. Of `has_views` all are copied, since some may only see others."""
    import opendml as dml

    graph = dml.Graph()
    inputs = [
        graph.input(name, dml.TensorDataType[str(x.dtype).removeprefix("torch.").upper()], x.shape)
        for name, x in named(arrays).items()
    ]
    made = [each for each in listed(function(*inputs, *map(graph.constant, constants))) if each is not None]
    results = {
        f"y{number}": dml.element_wise_identity(each) if has_views else each
        for number, each in enumerate(made)
    }
    return graph.compile(results, device=device), results


def named(arrays: Sequence[Any]) -> dict[str, Any]:
    """The arrays as a graph's inputs."""
    return {f"x{number}": x for number, x in enumerate(arrays)}


def listed(values: Any) -> list[Any]:
    """One value or several."""
    return list(values) if isinstance(values, (list, tuple)) else [values]
