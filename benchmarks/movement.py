"""Times what moves, pools and resamples on the CPU beside the copy of its bytes and other libraries.

python -m benchmarks.movement [--words WORD ...] [--rounds N] [--threads N] [--out DIRECTORY]

opendml, NumPy, ONNX Runtime and OpenVINO write into given arrays, PyTorch and JAX make new ones. All take
turns on the same threads and values; figures are medians. The floor is the copy of as many bytes as must be
read and written. `fused` is the time with a RELU behind it, `relu` that of the RELU alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.graphs import compiled, listed, named
from benchmarks.sessions import onnxruntime_session, openvino_request
from benchmarks.table_command import case_options, parsed, table_of_peers, write_table
from benchmarks.turns import fastest, in_turns

COLUMNS = ("floor", "opendml", "torch", "onnxruntime", "openvino", "jax", "numpy", "relu", "fused")
PEERS = COLUMNS[2:7]


def time_case(case: Any, rounds: int, threads: int) -> dict[str, Any]:
    """Median milliseconds of the floor and of all contenders, in turns, and the largest difference of a
    result from opendml's."""
    import numpy as np

    from benchmarks.yardstick import Copy

    contenders, results = _opendml(case)
    difference = 0.0
    for name, make in _makers(case, results, threads):
        try:
            run, to_numpy = make()
            found = [np.asarray(each, np.float32) for each in to_numpy(run())]
        except (ImportError, NotImplementedError, RuntimeError) as failure:
            print(f"{case.name}: {name} left out ({str(failure).strip().splitlines()[-1][:100]})", flush=True)
            continue
        contenders[name] = run
        for ours, theirs in zip(results, found, strict=True):
            difference = max(difference, float(np.abs(ours.astype(np.float32) - theirs).max()))
    read = case.read if case.read is not None else sum(x.nbytes for x in case.inputs)
    moved = read + sum(each.nbytes for each in results)
    milliseconds = in_turns(Copy(moved // 2, threads).seconds, contenders, rounds)
    ahead = fastest(milliseconds, PEERS)
    return {
        "name": case.name,
        "bytes": moved,
        "of_floor": milliseconds["floor"] / milliseconds["opendml"],
        "of_fastest": milliseconds[ahead] / milliseconds["opendml"] if ahead else None,
        "fused_of_floor": milliseconds["floor"] / milliseconds["fused"],
        "milliseconds": milliseconds,
        "difference": difference,
    }


def _opendml(case: Any) -> tuple[dict[str, Callable[[], Any]], list[Any]]:
    """opendml's runs: the case, a RELU of tensors of its results' sizes, and both fused; and the results."""
    import numpy as np

    import opendml as dml

    def bound(arrays: Sequence[Any], function: Callable[..., Any]) -> tuple[Callable[[], Any], list[Any]]:
        model, made = compiled(arrays, function, "cpu", has_views=True)
        outputs = {name: np.empty(each.sizes, arrays[0].dtype) for name, each in made.items()}
        work = model.bind(named(arrays), outputs)
        work.dispatch()
        return work.dispatch, list(outputs.values())

    def relu(*values: Any) -> list[Any]:
        return [dml.activation_relu(each) for each in values]

    run, results = bound(case.inputs, case.opendml)
    alone, _ = bound(results, relu)
    fused, _ = bound(case.inputs, lambda *inputs: relu(*listed(case.opendml(*inputs))))
    return {"opendml": run, "relu": alone, "fused": fused}, results


Run = tuple[Callable[[], Any], Callable[[Any], list[Any]]]
"""A call, and what makes arrays of its results."""


def _makers(case: Any, results: Sequence[Any], threads: int) -> Iterator[tuple[str, Callable[[], Run]]]:
    """The peers that can say a case."""
    if case.torch is not None:
        yield "torch", lambda: _torch(case)
    if case.onnx is not None:
        yield "onnxruntime", lambda: _onnxruntime(case, results, threads)
        yield "openvino", lambda: _openvino(case, results, threads)
    if case.jax is not None:
        yield "jax", lambda: _jax(case)
    if case.numpy is not None:
        yield "numpy", lambda: _numpy(case, results)


def _torch(case: Any) -> Run:
    import torch

    tensors = [torch.from_numpy(x) for x in case.inputs]
    return lambda: case.torch(*tensors), lambda made: [each.numpy() for each in listed(made)]


def _jax(case: Any) -> Run:
    import jax

    function = jax.jit(case.jax)
    arrays = [jax.device_put(x) for x in case.inputs]
    return lambda: jax.block_until_ready(function(*arrays)), listed


def _numpy(case: Any, results: Sequence[Any]) -> Run:
    import numpy as np

    (out,) = (np.empty_like(each) for each in results)
    return _into([out], lambda: case.numpy(*case.inputs, out=out))


def _into(outs: list[Any], work: Callable[[], Any]) -> Run:
    """A call that writes into given arrays, which it keeps alive."""

    def run() -> list[Any]:
        work()
        return outs

    return run, listed


def _onnxruntime(case: Any, results: Sequence[Any], threads: int) -> Run:
    import numpy as np
    import onnxruntime

    session = onnxruntime_session(_onnx_model(case), threads)
    binding = session.io_binding()
    outs = [np.empty_like(each) for each in results]
    for number, x in enumerate(case.inputs):
        binding.bind_ortvalue_input(f"x{number}", onnxruntime.OrtValue.ortvalue_from_numpy(x))
    for number, out in enumerate(outs):
        binding.bind_output(f"y{number}", "cpu", 0, out.dtype, out.shape, out.ctypes.data)
    return _into(outs, lambda: session.run_with_iobinding(binding))


def _openvino(case: Any, results: Sequence[Any], threads: int) -> Run:
    import numpy as np
    import openvino

    request = openvino_request(_onnx_model(case), threads)
    outs = [np.empty_like(each) for each in results]
    for number, x in enumerate(case.inputs):
        request.set_input_tensor(number, openvino.Tensor(x, shared_memory=True))
    for number, out in enumerate(outs):
        request.set_output_tensor(number, openvino.Tensor(out, shared_memory=True))
    return _into(outs, lambda: request.infer(share_outputs=True))


def _onnx_model(case: Any) -> bytes:
    """The case as a serialized model with the inputs x0.. and the outputs y0.."""
    from onnx import helper, numpy_helper

    operator, inputs = case.onnx, [f"x{number}" for number in range(len(case.inputs))]
    constants = [
        numpy_helper.from_array(each, f"c{number}")
        for number, each in enumerate(operator.constants)
        if not isinstance(each, str)
    ]
    extra = [each if isinstance(each, str) else f"c{n}" for n, each in enumerate(operator.constants)]
    outputs = [f"y{number}" for number in range(operator.outputs)]
    type = helper.np_dtype_to_tensor_dtype(case.inputs[0].dtype)
    graph = helper.make_graph(
        [helper.make_node(operator.name, [*inputs, *extra], outputs, **operator.attributes)],
        "case",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(inputs, case.inputs, strict=True)
        ],
        [helper.make_tensor_value_info(name, type, None) for name in outputs],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return bytes(model.SerializeToString())


def line(row: dict[str, Any]) -> str:
    """A row in a few words."""
    ahead = fastest(row["milliseconds"], PEERS)
    peer = f"{row['of_fastest']:5.2f} of {ahead}" if ahead else ""
    figures = f"{row['milliseconds']['opendml']:8.3f} ms {row['of_floor']:5.2f} of floor"
    return f"{row['name']:46} {figures} {row['fused_of_floor']:5.2f} fused {peer:20} {row['difference']:.1e}"


def main() -> None:
    """Times the cases and writes the table."""
    arguments = parsed(case_options("Times what moves, pools and resamples on the CPU."))
    # OpenBLAS reads its variables when NumPy is imported.
    import numpy as np
    import torch

    from benchmarks.movement_cases import cases

    rows = []
    for case in cases():
        if all(word in case.name for word in arguments.words):
            rows.append(time_case(case, arguments.rounds, arguments.threads))
            print(line(rows[-1]), flush=True)
    shown = table_of_peers(rows, COLUMNS, ("of_floor", "of_fastest", "fused_of_floor"))
    versions = {"torch": torch.__version__, "numpy": np.__version__}
    setting = f"PyTorch {torch.__version__}, NumPy {np.__version__}"
    write_table("movement", "Movement", arguments, rows, shown, setting=setting, unit="ms", **versions)


if __name__ == "__main__":
    main()
