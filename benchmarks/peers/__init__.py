"""One small file per library. Each turns a case into the library's own best way to say it."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.contender import Peer
from benchmarks.peers.jax import Jax
from benchmarks.peers.numpy import NumPy
from benchmarks.peers.onnxruntime import OnnxRuntime
from benchmarks.peers.opendml import OpenDml
from benchmarks.peers.openvino import OpenVino
from benchmarks.peers.torch import Torch, TorchCompiled

# By the name that the command line and the tables use. Each is called with the number of threads.
PEERS: dict[str, Callable[[int], Peer]] = {
    "opendml": OpenDml,
    "torch": Torch,
    "torch.compile": TorchCompiled,
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "jax": Jax,
    "numpy": NumPy,
}
