"""Trains a small language model and generates text: `python examples/generate.py --help`.

A GPT over characters learns from the documents of this project, with PyTorch, in under a minute. It is
exported to ONNX with its keys and values as inputs and outputs. So each run reads one character and the keys
and values of all characters before, which are one more in every run. The plot has the characters per second
of opendml, and of ONNX Runtime if it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "generate"
LAYERS, HEADS, WIDTH = 3, 4, 128
CONTEXT = 1024  # Characters that the model can read, at most.
TRAINED = 128  # Characters of a text that it is trained on.
BATCH = 24
TEMPERATURE = 0.6
NEEDED = ("torch", "onnx", "onnxscript", "matplotlib")
"""Packages beside opendml. PyTorch exports with onnxscript."""
ENGINES = {"opendml": "opendml", "ONNX Runtime": "onnxruntime"}

Arrays = dict[str, NDArray[Any]]
Run = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Generated:
    """A generated text, the seconds to load the model, and the seconds that each character took."""

    text: str
    load_seconds: float
    seconds: list[float]


def corpus() -> str:
    """Return the documents of the project as one text, without characters beyond ASCII."""
    pages = sorted(path for path in ROOT.rglob("*.md") if is_page(path))
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    return text.encode("ascii", "ignore").decode("ascii")


def is_page(path: Path) -> bool:
    """Return whether a file is a document of the project itself."""
    return not {".venv", "build", "node_modules"}.intersection(path.relative_to(ROOT).parts)


def trained(text: str, seconds: float) -> Any:
    """Return a model that was trained on a text for so long."""
    import torch
    from torch.nn import functional

    torch.manual_seed(0)
    alphabet = sorted(set(text))
    numbers = torch.tensor([alphabet.index(character) for character in text])
    model = gpt(len(alphabet))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    begun, step = time.perf_counter(), 0
    none = empty_cache(1)
    while (elapsed := time.perf_counter() - begun) < seconds:
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * min(1.0, (step + 1) / 50) * max(0.05, 1 - elapsed / seconds)
        starts = torch.randint(len(numbers) - TRAINED - 1, (BATCH, 1))
        windows = numbers[starts + torch.arange(TRAINED + 1)]
        past = [torch.from_numpy(np.repeat(each, BATCH, axis=0)) for each in none.values()]
        logits, *_ = model(windows[:, :-1], *past)
        loss = functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.2f}", flush=True)
        step += 1
    print(f"step {step}: loss {loss.item():.2f}, {elapsed:.0f} s")
    return model.eval()


def gpt(characters: int) -> Any:
    """Return a GPT with random weights, which reads numbers of characters and a cache."""
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

    class Block(nn.Module):  # type: ignore[misc, unused-ignore]
        """Attention and two linear layers, each behind a normalization."""

        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.all_three, self.joined = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            shape = (x.shape[0], x.shape[1], HEADS, WIDTH // HEADS)
            parts = self.all_three(self.before(x)).split(WIDTH, dim=-1)
            query, key, value = (part.reshape(shape).transpose(1, 2) for part in parts)
            keys, values = torch.cat([keys, key], dim=2), torch.cat([values, value], dim=2)
            reach = torch.arange(keys.shape[2])
            visible = reach[None, :] <= reach[-x.shape[1] :, None]
            read = functional.scaled_dot_product_attention(query, keys, values, attn_mask=visible)
            x = x + self.joined(read.transpose(1, 2).reshape(x.shape))
            return x + self.narrow(functional.gelu(self.wide(self.between(x)))), keys, values

    class Gpt(nn.Module):  # type: ignore[misc, unused-ignore]
        """A stack of blocks over embedded characters and positions."""

        def __init__(self) -> None:
            super().__init__()
            self.characters, self.positions = nn.Embedding(characters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.last, self.logits = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, characters)

        def forward(self, numbers: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
            length = past[0].shape[2]
            x = self.characters(numbers) + self.positions(torch.arange(length, length + numbers.shape[1]))
            present: list[Tensor] = []
            for block, keys, values in zip(self.blocks, past[::2], past[1::2], strict=True):
                x, *own = block(x, keys, values)
                present += own
            return self.logits(self.last(x)), *present

    return Gpt()


def cache_names(prefix: str) -> list[str]:
    """Return the names of the keys and values of all layers."""
    return [f"{prefix}_{layer}_{part}" for layer in range(LAYERS) for part in ("keys", "values")]


def empty_cache(batch: int) -> Arrays:
    """Return the keys and values of no characters."""
    return {name: np.zeros((batch, HEADS, 0, WIDTH // HEADS), np.float32) for name in cache_names("past")}


def export(model: Any, path: Path) -> None:
    """Write the model to an ONNX file, with the numbers of new and of past characters as open dimensions."""
    import torch
    from torch.export import Dim

    past = [torch.zeros(1, HEADS, 5, WIDTH // HEADS) for _ in cache_names("past")]
    lengths = ({1: Dim("length")}, tuple({2: Dim("past_length")} for _ in past))
    with warnings.catch_warnings():
        # PyTorch's exporter warns of its own code.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (torch.zeros(1, 3, dtype=torch.int64), *past),
            path,
            input_names=["numbers", *cache_names("past")],
            output_names=["logits", *cache_names("present")],
            dynamic_shapes=lengths,
            dynamo=True,
            external_data=False,
            verbose=False,
        )


def loaded(engine: str, path: Path) -> Run:
    """Return a function that reads more characters, given their numbers, and returns the logits."""
    if engine == "opendml":
        import opendml as dml

        # The state keeps keys and values in buffers that grow. A run writes only the new rows.
        state = dml.onnx.load(path).state()
        return lambda numbers: state.run({"numbers": numbers})["logits"]
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    cache = empty_cache(1)

    def run(numbers: NDArray[Any]) -> NDArray[Any]:
        logits, *present = session.run(["logits", *cache_names("present")], {"numbers": numbers, **cache})
        cache.update(zip(cache, present, strict=True))
        return np.asarray(logits)

    return run


def generate(engine: str, path: Path, alphabet: Sequence[str], prompt: str, count: int) -> Generated:
    """Continue a prompt by some characters, one in each run."""
    begun = time.perf_counter()
    run = loaded(engine, path)
    load_seconds = time.perf_counter() - begun
    chance = np.random.default_rng(1)
    numbers = np.array([[alphabet.index(character) for character in prompt]])
    text, seconds = prompt, list[float]()
    for _ in range(count):
        begun = time.perf_counter()
        logits = run(numbers)
        seconds.append(time.perf_counter() - begun)
        numbers = np.array([[picked(logits[0, -1], chance)]])
        text += alphabet[numbers.item()]
    return Generated(text, load_seconds, seconds)


def picked(logits: NDArray[np.float32], chance: np.random.Generator) -> int:
    """Return the number of a character, by its probability at the temperature."""
    weights = np.exp((logits - logits.max()).astype(np.float64) / TEMPERATURE)
    return int(np.searchsorted(np.cumsum(weights) / weights.sum(), chance.random()))


def in_own_process(engine: str, path: Path, alphabet: Sequence[str], prompt: str, count: int) -> Generated:
    """Generate in a process of its own, so that no engine has the threads of another beside it."""
    task = json.dumps([engine, str(path), list(alphabet), prompt, count])
    command = [sys.executable, __file__, "--task", task]
    finished = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Generated(**json.loads(finished.stdout))


def plot(runs: Mapping[str, Generated], path: Path) -> None:
    """Write a plot of characters per second by the length of the text."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for engine, run in runs.items():
        medians = [np.median(run.seconds[start : start + 16]) for start in range(1, len(run.seconds), 16)]
        axes.plot(np.arange(len(medians)) * 16, 1 / np.array(medians), label=engine)
    axes.set(xlabel="characters generated", ylabel="characters per second", ylim=(0, None))
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Train a model, export it, generate text with it, and plot the speed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=45, help="for training (45)")
    parser.add_argument("--prompt", default="## Operators\n\nThe device ", help="the beginning of the text")
    parser.add_argument("--count", type=int, default=400, help="characters to generate (400)")
    parser.add_argument("--output", type=Path, default=BUILD, help="folder for the model and the plot")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        engine, path, *rest = json.loads(arguments.task)
        print(json.dumps(asdict(generate(engine, Path(path), *rest))))
        return
    missing = [each for each in NEEDED if importlib.util.find_spec(each) is None]
    if missing:
        parser.exit(1, f"not installed: {', '.join(missing)}; pip install {' '.join(missing)}\n")
    text = corpus()
    alphabet = sorted(set(text))
    if unknown := sorted(set(arguments.prompt) - set(alphabet)):
        parser.error(f"--prompt: {unknown[0]!r} is in no document, so the model cannot read it")
    if not 0 < arguments.count <= CONTEXT - len(arguments.prompt):
        parser.error(f"--count: {arguments.count}; 1 to {CONTEXT - len(arguments.prompt)} with this prompt")
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "model.onnx"
    print(f"{len(text):,} characters of text, {len(alphabet)} different ones")
    export(trained(text, arguments.seconds), path)
    runs = {
        engine: in_own_process(engine, path, alphabet, arguments.prompt, arguments.count)
        for engine, package in ENGINES.items()
        if importlib.util.find_spec(package) is not None
    }
    print(f"\n{runs['opendml'].text}\n")
    for engine, run in runs.items():
        first, *others = run.seconds
        rate, median = len(others) / sum(others), np.median(others) * 1e3
        print(f"{engine}: loaded in {run.load_seconds:.2f} s, first character after {first * 1e3:.0f} ms,")
        print(f"    then {rate:,.0f} characters per second (median {median:.2f} ms)")
    plot(runs, arguments.output / "speed.png")
    print(f"plot: {arguments.output / 'speed.png'}")


if __name__ == "__main__":
    main()
