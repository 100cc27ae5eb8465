"""Times what indices choose and place, gradients of pooling and recurrent networks on the CPU.

python -m benchmarks.indexing [--words WORD ...] [--rounds N] [--threads N] [--out DIRECTORY]

opendml writes into given arrays; PyTorch, ONNX Runtime and NumPy make new ones. All take turns on the same
threads and values; figures are medians. The floor is the copy of as many bytes as must be read and written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.graphs import compiled, named
from benchmarks.sessions import onnxruntime_session
from benchmarks.table_command import case_options, parsed, table_of_peers, write_table
from benchmarks.turns import fastest, in_turns

COLUMNS = ("floor", "opendml", "torch", "onnxruntime", "numpy")
PEERS = COLUMNS[2:]


def time_case(case: Any, rounds: int, threads: int) -> dict[str, Any]:
    """Median milliseconds of the floor and of all contenders, in turns."""
    from benchmarks.yardstick import Copy

    ours, written = _opendml(case)
    contenders: dict[str, Callable[[], Any]] = {"opendml": ours}
    for name, make in _makers(case, threads):
        try:
            run = make()
            run()
        except (ImportError, NotImplementedError, RuntimeError) as failure:
            print(f"{case.name}: {name} left out ({str(failure).strip().splitlines()[-1][:100]})", flush=True)
            continue
        contenders[name] = run
    moved = case.moved or sum(x.nbytes for x in case.inputs) + written
    milliseconds = in_turns(Copy(moved // 2, threads).seconds, contenders, rounds)
    ahead = fastest(milliseconds, PEERS)
    return {
        "name": case.name,
        "bytes": moved,
        "of_floor": milliseconds["floor"] / milliseconds["opendml"],
        "of_fastest": milliseconds[ahead] / milliseconds["opendml"] if ahead else None,
        "milliseconds": milliseconds,
    }


def _opendml(case: Any) -> tuple[Callable[[], Any], int]:
    """opendml's run, and the bytes that it writes."""
    import numpy as np

    model, made = compiled(case.inputs, case.opendml, "cpu", case.constants)
    outputs = {name: np.empty(each.sizes, each.data_type.name.lower()) for name, each in made.items()}
    work = model.bind(named(case.inputs), outputs)
    work.dispatch()
    return work.dispatch, sum(each.nbytes for each in outputs.values())


def _makers(case: Any, threads: int) -> Iterator[tuple[str, Callable[[], Callable[[], Any]]]]:
    """The peers that can say a case."""
    if case.torch is not None:
        yield "torch", lambda: _torch(case)
    if case.onnx is not None:
        yield "onnxruntime", lambda: _onnxruntime(case, threads)
    if case.numpy is not None:
        yield "numpy", lambda: lambda: case.numpy(*case.inputs)


def _torch(case: Any) -> Callable[[], Any]:
    import torch

    tensors = [torch.from_numpy(x) for x in case.inputs]
    return lambda: case.torch(*tensors)


def _onnxruntime(case: Any, threads: int) -> Callable[[], Any]:
    import onnxruntime
    from onnx import helper, numpy_helper

    name, attributes, count = case.onnx
    arrays = case.onnx_inputs or case.inputs
    inputs, outputs = [f"x{number}" for number in range(len(arrays))], [f"y{n}" for n in range(count)]
    constants = [numpy_helper.from_array(x, f"c{number}") for number, x in enumerate(case.onnx_constants)]
    graph = helper.make_graph(
        [helper.make_node(name, [*inputs, *(each.name for each in constants)], outputs, **attributes)],
        "case",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(inputs, arrays, strict=True)
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime_session(model.SerializeToString(), threads)
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(x) for x in arrays]
    fed = dict(zip(inputs, values, strict=True))
    return lambda: session.run_with_ort_values(outputs, fed)


def line(row: dict[str, Any]) -> str:
    """A row in a few words."""
    ahead = fastest(row["milliseconds"], PEERS)
    peer = f"{row['of_fastest']:5.2f} of {ahead}" if ahead else ""
    return f"{row['name']:46} {row['milliseconds']['opendml']:8.3f} ms {row['of_floor']:5.2f} of floor {peer}"


def main() -> None:
    """Times the cases and writes the table."""
    arguments = parsed(
        case_options("Times what indices choose and place, and recurrent networks, on the CPU.")
    )
    # OpenBLAS reads its variables when NumPy is imported.
    import numpy as np
    import torch

    from benchmarks.indexing_cases import cases

    rows = []
    for case in cases():
        if all(word in case.name for word in arguments.words):
            rows.append(time_case(case, arguments.rounds, arguments.threads))
            print(line(rows[-1]), flush=True)
    shown = table_of_peers(rows, COLUMNS, ("of_floor", "of_fastest"))
    versions = {"torch": torch.__version__, "numpy": np.__version__}
    setting = f"PyTorch {torch.__version__}, NumPy {np.__version__}"
    write_table("indexing", "Indexing", arguments, rows, shown, setting=setting, unit="ms", **versions)


if __name__ == "__main__":
    main()
