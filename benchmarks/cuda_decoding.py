"""Times generating text with an ONNX model on a CUDA device: tokens per second, and bytes copied per token.

python -m benchmarks.cuda_decoding MODEL [--prompt N] [--count N] [--rounds N]

The model has a cache of keys and values, as GPT-2 of `benchmarks.sizes`. Its cache lies in host memory
("host"), in a state of the model on the device ("state"), or in PyTorch's tensors that an IOBinding is bound
to ("bound"). All read the same tokens. Times are from one token to the next, with the logits in host memory.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from opendml import onnx as ort
from opendml.targets.cuda.driver import CudaDevice
from opendml.targets.cuda.memory import Memory

Array = np.ndarray[Any, Any]
Step = Callable[[Array], Array]
"""Reads tokens of sizes (1, length), and returns their logits."""


@contextmanager
def counted(copies: list[int]) -> Iterator[None]:
    """Add the bytes of copies between host and device to a list."""
    written, found, copied = Memory.write, Memory.read, CudaDevice.copy_in_order

    def write(self: Memory, source: int, size: int) -> None:
        copies.append(size)
        written(self, source, size)

    def read(self: Memory, target: int, size: int) -> None:
        copies.append(size)
        found(self, target, size)

    def copy(self: CudaDevice, target: int, source: int, size: int, stream: int) -> None:
        copies.append(size)
        copied(self, target, source, size, stream)

    with (
        patch.object(Memory, "write", write),
        patch.object(Memory, "read", read),
        patch.object(CudaDevice, "copy_in_order", copy),
    ):
        yield


def on_host(session: ort.InferenceSession) -> Step:
    """Return steps whose cache is copied to the device and back."""
    caches = [each for each in session.get_inputs() if "past" in each.name]
    past = {
        each.name: np.zeros((1, int(each.shape[1] or 0), 0, int(each.shape[3] or 0)), np.float32)
        for each in caches
    }

    def step(tokens: Array) -> Array:
        names = [each.name for each in session.get_outputs()]
        outputs = dict(zip(names, session.run(names, {"input_ids": tokens, **past}), strict=True))
        past.update({name: outputs[name.replace("past", "present")] for name in past})
        logits: Array = outputs["logits"]
        return logits

    return step


def in_state(session: ort.InferenceSession) -> Step:
    """Return steps whose cache is the state of the model."""
    state = session.model.state(capacity=1024)
    return lambda tokens: state.run({"input_ids": tokens})["logits"]


def in_bindings(session: ort.InferenceSession) -> Step:
    """Return steps whose cache is bound to tensors that are longer."""
    caches = [each for each in session.get_inputs() if "past" in each.name]
    buffers = {
        each.name: torch.zeros(1, each.shape[1], 1024, each.shape[3], device="cuda") for each in caches
    }
    length = 0

    def step(tokens: Array) -> Array:
        nonlocal length
        binding, end = session.io_binding(), length + tokens.shape[1]
        binding.bind_cpu_input("input_ids", tokens)
        for name, buffer in buffers.items():
            binding.bind_ortvalue_input(name, ort.OrtValue(buffer[:, :, :length]))
            present = ort.OrtValue(buffer[:, :, :end])
            binding.bind_ortvalue_output(name.replace("past", "present"), present)
        binding.bind_output("logits")
        session.run_with_iobinding(binding)
        length = end
        logits: Array = binding.get_outputs()[-1].numpy()
        return logits

    return step


WAYS = {"host": on_host, "state": in_state, "bound": in_bindings}


def main() -> None:
    """Measure the ways, and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="an ONNX model with a cache of keys and values")
    parser.add_argument("--prompt", type=int, default=512, help="tokens read before (512)")
    parser.add_argument("--count", type=int, default=100, help="tokens timed in each round (100)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds behind the one that compiles (3)")
    options = parser.parse_args()
    session = ort.InferenceSession(options.model, providers=["CUDAExecutionProvider"])
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    copied, logits = dict[str, float](), dict[str, Array]()
    prompt = np.arange(options.prompt)[None] % 50
    for _ in range(options.rounds + 1):  # The first round compiles.
        for way, make in WAYS.items():
            step, copies, own = make(session), list[int](), list[float]()
            step(prompt)
            with counted(copies):
                for number in range(options.count):
                    began = time.perf_counter()
                    logits[way] = step(np.array([[number % 50]]))
                    own.append(time.perf_counter() - began)
            times[way].append(statistics.median(own))
            copied[way] = sum(copies) / options.count
    for way, own in times.items():
        error = np.abs(logits[way] - logits["host"]).max() / np.abs(logits["host"]).max()
        print(
            f"{way:6} {1e3 * min(own[1:]):8.3f} ms  {1 / min(own[1:]):8.1f} tokens/s"
            f"  {copied[way]:12,.0f} bytes copied per token  error {error:.1e}"
        )


if __name__ == "__main__":
    main()
