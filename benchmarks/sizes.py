"""Times models whose sizes change from run to run, in opendml and in other engines.

python -m benchmarks.sizes [--device NAME] [--case TEXT ...] [--rounds N] [--threads N] [--models FOLDER]
                           [--out FILE]

A case is a model and a list of runs, most of them with sizes that no run had before. Each engine runs the
list in a process of its own, and the engines alternate. Loading is timed apart. All get the same values;
a checksum of the outputs of each run is compared. Models that are exported from PyTorch with random weights
stay in the folder.

On the CPU, the engines are ONNX Runtime, and OpenVINO if it is installed. With `--device cuda`, they are
PyTorch, and `torch.compile` with dynamic sizes, for models that PyTorch has. Inputs and outputs are arrays in
host memory there too, but caches stay on the device. The memory is that of the device.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.models.cases import CASES as FIXED
from benchmarks.models.cases import GPT2_LAYERS
from benchmarks.models.worker import device_memory, peak_memory

ROOT = Path(__file__).parents[1]
ENGINES = {
    "cpu": {"opendml": "opendml", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"},
    "cuda": {"opendml": "opendml", "torch": "PyTorch", "inductor": "torch.compile"},
}
"""The names of engines in tables, by their own names, for each device."""
TOLERANCE = 1e-3
"""The greatest difference of sums of outputs, relative to the sum of their magnitudes."""

Arrays = dict[str, NDArray[Any]]
Run = Callable[[Arrays], Arrays]
Results = Iterator[tuple[str, Arrays]]
"""The sizes of each run as text, and its outputs."""


@dataclass(frozen=True)
class Case:
    """A model whose sizes change.

    Args:
        name: on the command line and in the table.
        model: returns the model's file, which it may make in a folder.
        runs: makes all runs one after the other.
        network: makes PyTorch's module, which takes the inputs in their order; None: there is none.
        caches: the sizes of inputs before the first run, by name, that are outputs of the run before. These
            have names with "present" for "past". Engines keep them.
    """

    name: str
    model: Callable[[Path], Path]
    runs: Callable[[Run], Results]
    network: Callable[[], Any] | None = None
    caches: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def engines(self, device: str) -> list[str]:
        """Return the engines that run the case on a device."""
        packages = {"inductor": "torch"}
        return [
            engine
            for engine in ENGINES[device]
            if find_spec(packages.get(engine, engine)) is not None
            and (self.network is not None or engine not in ("torch", "inductor"))
        ]


def in_random_order(sizes: list[int], inputs: Callable[[int], Arrays]) -> Callable[[Run], Results]:
    """Return runs with each of some sizes, in an order that is the same every time."""

    def runs(run: Run) -> Results:
        for size in np.random.default_rng(0).permutation(sizes).tolist():
            yield str(size), run(inputs(size))

    return runs


def decoding(prompt: int, count: int, numbers: str) -> Callable[[Run], Results]:
    """Return runs that read a prompt, and then one token each, with keys and values of all before.

    Args:
        prompt: tokens of the prompt.
        count: runs after it.
        numbers: the name of the input of tokens.
    """

    def runs(run: Run) -> Results:
        tokens = np.arange(prompt)[None] % 50
        for step in range(count + 1):
            outputs = run({numbers: tokens})
            tokens = np.array([[step % 50]])
            yield str(prompt + step), {"logits": outputs["logits"]}

    return runs


def with_caches(run: Callable[[dict[str, Any]], dict[str, Any]], first: Mapping[str, Any]) -> Run:
    """Return runs that get the caches of the run before, and return other outputs.

    Args:
        run: runs the model.
        first: the caches before the first run, by name.
    """
    past = dict(first)

    def step(inputs: Arrays) -> Arrays:
        outputs = run({**inputs, **past})
        for name in past:
            past[name] = outputs.pop(name.replace("past", "present"))
        return outputs

    return step if past else run


def random_floats(*sizes: int) -> NDArray[np.float32]:
    """Return the random numbers of these sizes, which are the same in each process."""
    return np.random.default_rng(sum(sizes)).standard_normal(sizes, np.float32)


def random_pixels(*sizes: int) -> NDArray[np.float32]:
    """Return random numbers from 0 to 1. Of normal ones, activations of a detector are partly subnormal."""
    return np.random.default_rng(sum(sizes)).random(sizes, np.float32)


def token_inputs(length: int) -> Arrays:
    """Return the inputs of BERT for a text of some length."""
    ids = np.random.default_rng(length).integers(0, 30522, (1, length))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def _characters(folder: Path) -> Path:
    """Return a GPT of 3 layers over characters, as `examples/generate.py` exports it."""
    from examples import generate

    path = folder / "gpt-characters.onnx"
    if not path.exists():
        generate.export(_character_network(), path)
    return path


def _character_network() -> Any:
    import torch

    from examples import generate

    torch.manual_seed(0)
    return generate.gpt(96).eval()


def _gpt2(folder: Path) -> Path:
    import torch
    from torch.export import Dim

    past = [torch.zeros(1, 12, 5, 64) for _ in _KEYS]
    dims = ({1: Dim("length")}, tuple({2: Dim("past_length")} for _ in past))
    arguments = torch.zeros(1, 3, dtype=torch.int64), *past
    outputs = ["logits", *(name.replace("past", "present") for name in _KEYS)]
    return _exported(folder / "gpt2.onnx", _gpt2_network, arguments, dims, ["input_ids", *_KEYS], outputs)


def _gpt2_network() -> Any:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from benchmarks.models.networks import NextToken

    torch.manual_seed(0)
    return NextToken(GPT2LMHeadModel(GPT2Config()), []).eval()


def _packed_gpt2(folder: Path) -> Path:
    """Return GPT-2 with weights of 4 bits in blocks of 32, as ONNX Runtime's quantizer packs products."""
    path = folder / "gpt2-int4.onnx"
    if path.exists():
        return path
    import onnx
    from onnx import helper, numpy_helper
    from onnxruntime.quantization.matmul_nbits_quantizer import (
        DefaultWeightOnlyQuantConfig,
        MatMulNBitsQuantizer,
    )

    model = onnx.load(_gpt2(folder))
    weights = {each.name: each for each in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        (name, *_) = node.output
        if node.op_type == "Transpose" and (weight := weights.get(node.input[0])) is not None:
            turned = np.ascontiguousarray(numpy_helper.to_array(weight).T)
            model.graph.initializer.append(numpy_helper.from_array(turned, name))
        elif node.op_type == "Gemm":  # The quantizer packs products of MatMul alone.
            left, right, *bias = node.input
            product = f"{name}_product" if bias else name
            nodes.append(helper.make_node("MatMul", [left, right], [product], f"{node.name}_product"))
            nodes += [helper.make_node("Add", [product, each], [name], node.name) for each in bias]
        else:
            nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    settings = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=True)
    quantizer = MatMulNBitsQuantizer(model, algo_config=settings)
    quantizer.process()
    onnx.save(quantizer.model.model, path)
    return path


def _bert(folder: Path) -> Path:
    import torch
    from torch.export import Dim

    ids, length = torch.ones(1, 7, dtype=torch.int64), Dim("length", min=2, max=512)
    dims = (({1: length}, {1: length}),)
    return _exported(folder / "bert.onnx", _bert_network, (ids, ids.clone()), dims, _TOKENS, ["hidden"])


def _bert_network() -> Any:
    import torch
    from transformers import BertConfig, BertModel

    from benchmarks.models.networks import Network

    torch.manual_seed(0)
    return Network(BertModel(BertConfig()), _TOKENS).eval()


def _exported(
    path: Path,
    network: Callable[[], Any],
    arguments: tuple[Any, ...],
    dims: Any,
    inputs: list[str],
    outputs: list[str],
) -> Path:
    """Return the file of a network with random weights; make it if it is not there."""
    import torch

    if not path.exists():
        torch.onnx.export(
            network(),
            arguments,
            path,
            input_names=inputs,
            output_names=outputs,
            dynamic_shapes=dims,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    return path


def packaged(name: str) -> Callable[[Path], Path]:
    """Return a function that returns the file of a model in an installed package."""
    return lambda folder: FIXED[name].path


_KEYS = {
    f"past_{number}_{part}": (1, 12, 0, 64) for number in range(GPT2_LAYERS) for part in ("key", "value")
}
CHARACTER_CACHE = {f"past_{n}_{part}": (1, 4, 0, 32) for n in range(3) for part in ("keys", "values")}
"""The sizes of the empty caches of the model of characters, by the names of inputs."""
_TOKENS = ["input_ids", "attention_mask"]
_LENGTHS = [1, 2, 3, 5, 8, 13, 16, 21, 34, 55, 64, 89, 100, 128, 144, 200, 233, 256, 300, 377, 400, 512]

CASES = (
    Case("gpt, 3 layers", _characters, decoding(17, 200, "numbers"), _character_network, CHARACTER_CACHE),
    Case("gpt-2", _gpt2, decoding(512, 100, "input_ids"), _gpt2_network, _KEYS),
    Case("gpt-2, int4", _packed_gpt2, decoding(512, 100, "input_ids"), None, _KEYS),
    Case("bert-base", _bert, in_random_order(_LENGTHS, token_inputs), _bert_network),
    Case(
        "nudenet",
        packaged("nudenet"),
        in_random_order([*range(1, 9)], lambda n: {"images": random_pixels(n, 3, 320, 320)}),
    ),
    Case(
        "rapidocr-rec",
        packaged("rapidocr-rec"),
        in_random_order([*range(100, 801, 20)], lambda n: {"x": random_floats(1, 3, 48, n)}),
    ),
)


def loaded(engine: str, case: Case, path: Path, threads: int, device: str) -> Run:
    """Return a function that runs a model on arrays by name."""
    empty = {name: np.zeros(sizes, np.float32) for name, sizes in case.caches.items()}
    if engine == "opendml":
        import opendml as dml

        if device == "cpu":
            model = dml.onnx.load(path, dml.Device("cpu", threads=threads))
            return with_caches(lambda inputs: dict(model(**inputs)), empty)
        model = dml.onnx.load(path, device)
        return model.state().run if empty else lambda inputs: dict(model(**inputs))
    if engine in ("torch", "inductor"):
        assert case.network is not None
        return _torch(case.network, case.caches, engine == "inductor", device)
    from benchmarks.sessions import onnxruntime_session, openvino_request

    if engine == "openvino":
        request = openvino_request(str(path), threads)
        names = [output.get_any_name() for output in request.model_outputs]

        def run(inputs: Arrays) -> Arrays:
            found = request.infer(inputs, share_inputs=True, share_outputs=False)
            return dict(zip(names, found.to_tuple(), strict=True))

        return with_caches(run, empty)
    session = onnxruntime_session(str(path), threads)
    names = [output.name for output in session.get_outputs()]
    return with_caches(lambda inputs: dict(zip(names, session.run(names, inputs), strict=True)), empty)


def _torch(
    network: Callable[[], Any], caches: Mapping[str, tuple[int, ...]], is_compiled: bool, device: str
) -> Run:
    """Return runs of a module of PyTorch. Its first output is copied to host memory, and caches are not.

    Products of float32 are exact, without TF32.
    """
    import torch

    torch.set_grad_enabled(False)
    module = network().to(device)
    torch.set_default_device(device)  # Networks make tensors of positions.
    names = ["logits", *(name.replace("past", "present") for name in caches)]
    compiled = torch.compile(module, dynamic=True) if is_compiled else module

    def run(inputs: dict[str, Any]) -> dict[str, Any]:
        given = [torch.as_tensor(each, device=device) for each in inputs.values()]
        found = compiled(*given)
        first, *others = found if isinstance(found, tuple) else (found,)
        return dict(zip(names, [first.cpu().numpy(), *others], strict=True))

    return with_caches(run, {name: torch.zeros(sizes) for name, sizes in caches.items()})


def work(engine: str, name: str, path: Path, threads: int, device: str) -> dict[str, Any]:
    """Run a case in this process, and return what was measured."""
    case = next(each for each in CASES if each.name == name)
    begun = time.perf_counter()
    run = loaded(engine, case, path, threads, device)
    load, times = time.perf_counter() - begun, list[float]()

    def timed(inputs: Arrays) -> Arrays:
        begun = time.perf_counter()
        outputs = run(inputs)
        times.append(time.perf_counter() - begun)
        return outputs

    sums = {}
    for number, (sizes, outputs) in enumerate(case.runs(timed)):
        values = [each.astype(np.float64) for each in outputs.values()]
        sums[f"{number}: {sizes}"] = [
            sum(float(f(each).sum()) for each in values) for f in (np.positive, np.abs)
        ]
    memory = peak_memory() if device == "cpu" else device_memory()
    return {"load": load, "times": times, "sums": sums, "memory": memory}


def compared(case: Case, engines: Sequence[str], arguments: argparse.Namespace) -> dict[str, Any]:
    """Run a case in several engines, and return medians of what was measured."""
    path, found = case.model(arguments.models), {engine: list[dict[str, Any]]() for engine in engines}
    for _ in range(arguments.rounds):
        for engine in engines:
            task = json.dumps([engine, case.name, str(path), arguments.threads, arguments.device])
            command = [sys.executable, "-m", "benchmarks.sizes", "--task", task]
            variables = {"OMP_NUM_THREADS": str(arguments.threads)}
            finished = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | variables
            )
            found[engine].append(json.loads(finished.stdout.splitlines()[-1]))
    own, *others = (found[engine][0]["sums"] for engine in engines)
    differing = [
        key
        for key, (total, magnitude) in own.items()
        if any(abs(total - other[key][0]) > TOLERANCE * magnitude for other in others)
    ]
    result: dict[str, Any] = {"case": case.name, "differing": differing}
    for engine in engines:
        rounds = found[engine]
        result[engine] = {
            "load": statistics.median(each["load"] for each in rounds),
            "first": statistics.median(each["times"][0] for each in rounds),
            "total": statistics.median(sum(each["times"]) for each in rounds),
            "median": statistics.median(statistics.median(each["times"]) for each in rounds),
            "memory": statistics.median(each["memory"] for each in rounds),
        }
    return result


COLUMNS = ("load s", "first run ms", "all runs s", "median run ms", "memory MB")


def row(result: dict[str, Any], engines: Sequence[str]) -> str:
    """Return a case as a row of the table, with a number for each engine in a cell."""
    scales = {"load": 1, "first": 1e3, "total": 1, "median": 1e3, "memory": 1e-6}
    cells = [
        " / ".join([f"{result[engine][key] * scale:,.2f}" for engine in engines])
        for key, scale in scales.items()
    ]
    remark = f" outputs differ: {', '.join(result['differing'])}" if result["differing"] else ""
    return f"| {result['case']} | {' | '.join(cells)} |{remark}"


def options(description: str | None, rounds: str) -> argparse.ArgumentParser:
    """Return a parser of the options that benchmarks of these cases have.

    Args:
        description: the text of the module.
        rounds: what `--rounds` counts.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", default=[], help="a part of the names of cases")
    parser.add_argument("--rounds", type=int, default=3, help=rounds)
    parser.add_argument(
        "--models", type=Path, default=ROOT / "build" / "sizes", help="folder of exported models"
    )
    parser.add_argument("--out", type=Path, help="a file for the table")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    return parser


def main() -> None:
    """Measure the cases, and print the table."""
    parser = options(__doc__, "processes of each engine (3)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each engine (2)")
    parser.add_argument("--device", choices=ENGINES, default="cpu", help="where the engines run (cpu)")
    arguments = parser.parse_args()
    if arguments.task:
        engine, name, path, threads, device = json.loads(arguments.task)
        print(json.dumps(work(engine, name, Path(path), threads, device)))
        return
    if arguments.device == "cpu" and find_spec("onnxruntime") is None:
        parser.exit(1, "onnxruntime is not installed: make bench installs it\n")
    arguments.models.mkdir(parents=True, exist_ok=True)
    names = " / ".join(ENGINES[arguments.device].values())
    head = ["case", *(f"{each}: {names}" for each in COLUMNS)]
    lines = [f"| {' | '.join(head)} |", f"|---|{'--:|' * len(COLUMNS)}"]
    for case in CASES:
        if not arguments.case or any(text in case.name for text in arguments.case):
            engines = case.engines(arguments.device)
            lines.append(row(compared(case, engines, arguments), engines))
            print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
