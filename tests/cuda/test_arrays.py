"""Arrays of PyTorch, CuPy and JAX on a GPU: in place, in the order of their streams, of their own kind. Skips
where there is no GPU; `test_arrays_exchange.py` checks the rules without one."""

from __future__ import annotations

import importlib
import itertools
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.runtime.memory.host_array import Array
from opendml.targets.cuda.arrays import ready_memory

SIZES = (2, 3, 40, 50)


@dataclass(frozen=True)
class Library:
    """How the tests use a library."""

    name: str
    array: Callable[[Array], Any]
    host: Callable[[Any], Array]

    def __str__(self) -> str:
        return self.name


@pytest.fixture(scope="module")
def gpu() -> dml.Device:
    try:
        return dml.Device("cuda")
    except dml.Unsupported as error:
        pytest.skip(str(error))


@pytest.fixture
def torch(gpu: dml.Device) -> Any:
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("PyTorch without CUDA")
    return module


def cupy_library() -> Library:
    cupy = pytest.importorskip("cupy")
    return Library("cupy", cupy.asarray, cupy.asnumpy)


def jax_library() -> Library:
    jax = pytest.importorskip("jax")
    try:
        device = jax.devices("gpu")[0]
    except RuntimeError as error:
        pytest.skip(str(error))
    return Library("jax", lambda values: jax.device_put(values, device), np.asarray)


def library_named(name: str, gpu: dml.Device, request: pytest.FixtureRequest) -> Library:
    if name == "torch":
        torch = request.getfixturevalue("torch")
        return Library(name, lambda array: torch.from_numpy(array.copy()).cuda(), lambda x: x.cpu().numpy())
    if name == "opendml":
        return Library(name, gpu.upload, gpu.download)
    return cupy_library() if name == "cupy" else jax_library()


@pytest.fixture(params=["torch", "cupy", "jax", "opendml"])
def library(gpu: dml.Device, request: pytest.FixtureRequest) -> Library:
    return library_named(request.param, gpu, request)


@pytest.fixture(params=["torch", "cupy", "opendml"])
def mutable(gpu: dml.Device, request: pytest.FixtureRequest) -> Library:
    """A library whose arrays may be written."""
    return library_named(request.param, gpu, request)


def values(seed: int = 0, type: str = "float32") -> Array:
    return np.random.default_rng(seed).normal(size=SIZES).astype(type)


def relu(array: Array) -> Array:
    return np.maximum(array, 0)


def package(value: Any) -> str:
    return type(value).__module__.partition(".")[0].removesuffix("lib")


@pytest.mark.parametrize("type", ["float32", "float16"])
def test_result_is_of_the_callers_kind(library: Library, type: str) -> None:
    x = values(type=type)
    y = dml.activation_relu(library.array(x))
    assert package(y) == library.name
    np.testing.assert_array_equal(library.host(y), relu(x))


def test_chain_of_calls_is_in_order(library: Library) -> None:
    x = values()
    y = library.array(x)
    for _ in range(50):
        y = dml.activation_linear(y, alpha=1.0, beta=1.0)
    np.testing.assert_allclose(library.host(y), x + 50, rtol=1e-5)


def test_memory_of_dropped_results_is_not_reused_too_early(library: Library) -> None:
    x = [values(seed) for seed in range(8)]
    arrays = [library.array(each) for each in x]
    for _ in range(20):
        results = [dml.activation_relu(array) for array in arrays]
        del results[::2]
        again = [dml.activation_linear(array, alpha=2.0, beta=0.0) for array in results]
    for number, result in enumerate(again):
        np.testing.assert_array_equal(library.host(result), 2 * relu(x[2 * number + 1]))


def test_out_is_written(mutable: Library) -> None:
    x, out = mutable.array(values()), mutable.array(values(1))
    before = ready_memory(out, "out").address
    assert dml.activation_relu(x, out=out) is out
    assert ready_memory(out, "out").address == before
    np.testing.assert_array_equal(mutable.host(out), relu(values()))


def test_in_place(mutable: Library) -> None:
    x = mutable.array(values())
    dml.activation_relu(x, out=x)
    np.testing.assert_array_equal(mutable.host(x), relu(values()))


def test_arrays_of_jax_are_never_written(gpu: dml.Device) -> None:
    jax = jax_library()
    x, out = jax.array(values()), jax.array(values(1))
    with pytest.raises(dml.InvalidArgument, match="a read-only array"):
        dml.activation_relu(x, out=out)
    np.testing.assert_array_equal(jax.host(out), values(1))


def test_jax_goes_on_computing_with_results(gpu: dml.Device) -> None:
    jax, numpy = jax_library(), importlib.import_module("jax.numpy")
    x = jax.array(values())
    y = x
    for _ in range(20):
        y = numpy.tanh(dml.activation_linear(numpy.sin(y), alpha=1.5, beta=0.25))
    expected = values()
    for _ in range(20):
        expected = np.tanh(1.5 * np.sin(expected) + 0.25)
    np.testing.assert_allclose(jax.host(y), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("other", [cupy_library, jax_library])
def test_libraries_mix_on_one_device(torch: Any, other: Callable[[], Library]) -> None:
    x, scale = values(), values(1)[:1, :, :1, :1]
    y = dml.mean_variance_normalization1(torch.from_numpy(x).cuda(), other().array(scale), axes=[2, 3])
    expected = dml.mean_variance_normalization1(x, scale, axes=[2, 3], device="reference")
    assert package(y) == "torch"
    np.testing.assert_allclose(y.cpu().numpy(), expected, atol=1e-5)


def test_strides_of_the_caller_are_followed(torch: Any) -> None:
    x = torch.from_numpy(values()).cuda()
    view = x.permute(0, 2, 3, 1)[:, ::2]
    result = dml.mean_variance_normalization1(view, axes=[1, 2])
    expected = dml.mean_variance_normalization1(view.cpu().numpy(), axes=[1, 2], device="reference")
    np.testing.assert_allclose(result.cpu().numpy(), expected, atol=1e-5)
    out = torch.zeros_like(x)
    dml.activation_relu(x[:, 1:], out=out[:, :2])
    assert torch.equal(out[:, :2], x[:, 1:].relu())
    assert not out[:, 2:].any()


def test_work_is_on_the_current_stream_of_pytorch(torch: Any) -> None:
    stream = torch.cuda.Stream()
    source = torch.from_numpy(values()).cuda()
    x = torch.zeros_like(source)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.copy_(source)
        y = dml.activation_relu(x)
        z = y + 1
    stream.synchronize()
    assert torch.equal(z, source.relu() + 1)


def test_streams_do_not_share_temporaries(torch: Any) -> None:
    """Groups of this size meet in scratch memory."""
    x = [torch.randn(4, 1 << 21, device="cuda") + number for number in range(2)]
    torch.cuda.synchronize()
    expected = [dml.mean_variance_normalization1(array, axes=[1]) for array in x]
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in x]
    for _ in range(10):
        results = []
        for stream, array in zip(streams, x, strict=True):
            with torch.cuda.stream(stream):
                results.append(dml.mean_variance_normalization1(array, axes=[1]))
        torch.cuda.synchronize()
        assert all(map(torch.equal, results, expected))


def test_threads_have_streams_of_their_own(torch: Any) -> None:
    x = torch.from_numpy(values()).cuda()
    torch.cuda.synchronize()
    correct = []

    def work() -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            y = x
            for _ in range(100):
                y = dml.activation_linear(y, alpha=1.0, beta=0.5)
            correct.append(torch.allclose(y, x + 50, rtol=1e-4))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert correct == [True] * 4


def test_graphs_of_pytorch_capture_calls(torch: Any) -> None:
    x = torch.from_numpy(values()).cuda()
    out = torch.empty_like(x)
    dml.activation_relu(x, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dml.activation_relu(x, out=out)
    x.neg_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, x.relu())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda torch, x: x.requires_grad_(), "requires its gradient"),
        (lambda torch, x: x.to(torch.bfloat16), "bfloat16; DirectML has"),
        (lambda torch, x: torch.imag(torch.complex(x, x).conj()), "negative bit"),
        (lambda torch, x: x.cpu(), "in host memory, but input is on cuda:0"),
    ],
    ids=["gradient", "type", "negative bit", "host"],
)
def test_tensors_that_do_not_fit_are_named(torch: Any, change: Callable[..., Any], text: str) -> None:
    x = torch.from_numpy(values()).cuda()
    with pytest.raises(dml.InvalidArgument, match=f"mean_variance_normalization1.scale: .*{text}"):
        dml.mean_variance_normalization1(x, change(torch, x.clone()), axes=[1])


def test_parameters_are_taken_where_no_gradient_is_recorded(torch: Any) -> None:
    x = torch.from_numpy(values()).cuda().requires_grad_()
    with torch.no_grad():
        y = dml.activation_relu(x)
        assert torch.equal(y, x.relu())
    with pytest.raises(dml.InvalidArgument, match="requires its gradient"):
        dml.activation_relu(x)


@pytest.fixture
def chain(gpu: dml.Device) -> tuple[Any, Any, list[dml.BoundOperator]]:
    """Ten operators that add 1, each to the result of the one before; the first array and the last."""
    tensor = dml.TensorDesc(dml.FLOAT32, SIZES)
    desc = dml.descs.ActivationLinear(tensor, tensor, alpha=1.0, beta=1.0)
    compiled = gpu.compile_operator(gpu.create_operator(desc))
    arrays = [gpu.upload(values()) for _ in range(11)]
    return arrays[0], arrays[-1], [compiled.bind([a], [b]) for a, b in itertools.pairwise(arrays)]


def test_recording_replays_all_dispatches(
    gpu: dml.Device, torch: Any, chain: tuple[Any, Any, list[dml.BoundOperator]]
) -> None:
    first, last, bound = chain
    recording = gpu.record(bound)
    np.testing.assert_array_equal(gpu.download(last), values())
    for way in (recording.dispatch, lambda: recording.enqueue(torch.cuda.current_stream())):
        torch.from_dlpack(first).add_(100)
        expected = gpu.download(first) + 10
        way()
        np.testing.assert_allclose(gpu.download(last), expected, rtol=1e-6)


def test_bound_operators_run_on_a_stream(
    gpu: dml.Device, torch: Any, chain: tuple[Any, Any, list[dml.BoundOperator]]
) -> None:
    _, last, bound = chain
    stream = torch.cuda.Stream()
    for each in bound:
        each.enqueue(stream)
    stream.synchronize()
    np.testing.assert_allclose(gpu.download(last), values() + 10, rtol=1e-5)


def test_models_run_over_device_arrays(library: Library) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, SIZES)
    scale = graph.constant(values(2)[:1, :, ::40, ::50])
    normalized = dml.mean_variance_normalization1(x, scale, axes=[2, 3])
    outputs = {"y": dml.activation_relu(normalized)}
    model = graph.compile(outputs, device="cuda")
    expected = graph.compile(outputs, device="reference")(x=values())["y"]
    y = model(x=library.array(values()))["y"]
    assert package(y) == library.name
    np.testing.assert_allclose(library.host(y), expected, atol=1e-5)
    np.testing.assert_allclose(model(x=values())["y"], expected, atol=1e-5)


def test_own_arrays_become_those_of_others(gpu: dml.Device, torch: Any) -> None:
    y = torch.from_dlpack(gpu.upload(values()))
    np.testing.assert_array_equal((y + 1).cpu().numpy(), values() + 1)


def test_memory_is_given_back(gpu: dml.Device, torch: Any) -> None:
    gpu.synchronize()
    free, _ = torch.cuda.mem_get_info()
    for _ in range(50):
        gpu.empty([256, 1024, 1024])
    gpu.synchronize()
    assert torch.cuda.mem_get_info()[0] > free - 3 * 2**30


def test_too_much_memory_is_unsupported(gpu: dml.Device) -> None:
    with pytest.raises(dml.Unsupported, match=r"cuda: out of memory: .* bytes on the device; .* are free"):
        [gpu.empty([1 << 16, 1 << 15], dml.INT64) for _ in range(1000)]
    np.testing.assert_array_equal(dml.activation_relu(values(), device="cuda"), relu(values()))


def test_the_guide_is_true_on_a_gpu(torch: Any) -> None:
    guide = (Path(__file__).parents[2] / "docs/guide/nvidia.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```py\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile("\n".join(examples), "nvidia.md", "exec"), names)
    torch.cuda.synchronize()
    assert torch.allclose(names["y"], torch.nn.functional.celu(names["x"]))


def test_calls_with_temporaries_hold_no_memory(torch: Any) -> None:
    """A call takes its temporaries from the stream and gives them back, also where it is recorded."""
    shapes = [(1, 16, 512 + 16 * number, 1024) for number in range(8)]
    arrays = [torch.rand(shape, device="cuda") for shape in shapes]
    results = [dml.local_response_normalization(x, cross_channel=True, local_size=5) for x in arrays]

    def taken(alpha: float) -> int:
        """Bytes of the device that are free before calls of new models, and not after."""
        torch.cuda.synchronize()
        before, _ = torch.cuda.mem_get_info()
        for x, result in zip(arrays, results, strict=True):
            dml.local_response_normalization(x, cross_channel=True, local_size=5, alpha=alpha, out=result)
        torch.cuda.synchronize()
        after, _ = torch.cuda.mem_get_info()
        return int(before - after)

    # Other processes may take memory meanwhile, but not each time.
    assert min(map(taken, (0.5, 0.25, 0.75, 0.125))) < 2**24
    graph = torch.cuda.CUDAGraph()
    out = torch.empty_like(arrays[0])
    with torch.cuda.graph(graph):
        dml.local_response_normalization(arrays[0], cross_channel=True, local_size=5, alpha=0.5, out=out)
    arrays[0].mul_(2)
    graph.replay()
    torch.cuda.synchronize()
    expected = dml.local_response_normalization(
        arrays[0].cpu().numpy(), cross_channel=True, local_size=5, alpha=0.5
    )
    np.testing.assert_allclose(out.cpu().numpy(), expected, rtol=1e-5)
