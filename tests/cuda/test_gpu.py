"""The CUDA target on a device, against the reference. Skips where there is none."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import opendml as dml
from opendml.errors import InvalidArgument, Unsupported
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import TensorDataType
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.cuda import planning
from opendml.targets.cuda.device_array import DeviceArray
from opendml.targets.cuda.driver import CudaDevice, device
from opendml.targets.cuda.executable import CudaExecutable, CudaInstance
from opendml.targets.cuda.launcher import CapturedLaunches
from opendml.targets.cuda.planning import Scheduler, compiled_program
from tools.cuda_case import Case
from tools.cuda_cases import all_cases
from tools.cuda_check import results, worst_error
from tools.cuda_tiles import schedulers

CASES = list(all_cases())
SIZES = (3, 1000)
OF_TILES = ("129x67x40", "128x128x64", "(2, 1", "(129, 67, 83)", "(128, 96, 160)")
"""Parts of the names of contractions that every tile computes; those of copies take some of them."""


@pytest.fixture(scope="module")
def gpu() -> CudaDevice:
    try:
        return device()
    except Unsupported as error:
        pytest.skip(str(error))


def relu() -> CudaExecutable:
    """RELU of SIZES."""
    tensor = TensorDesc(TensorDataType.FLOAT32, SIZES)
    return compiled_program(program_of(descs.ActivationRelu(tensor, tensor)))


def random_array() -> Array:
    return np.random.default_rng(1).normal(size=SIZES).astype(np.float32)


def upload(values: Array, gpu: CudaDevice) -> DeviceArray:
    array = DeviceArray(gpu, values.shape, ScalarType.FLOAT32)
    array.copy_from(values)
    return array


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_result_is_the_reference(gpu: CudaDevice, case: Case) -> None:
    received, expected, _ = results(case)
    is_normalization = "normalization" in case.name or "centering" in case.name
    for a, b, layout in zip(received, expected, case.program.outputs, strict=True):
        assert worst_error(a, b, layout, is_normalization, case) <= 1


@pytest.mark.parametrize(("way", "scheduler"), list(schedulers()))
def test_every_tile_computes_contractions(gpu: CudaDevice, way: str, scheduler: Scheduler) -> None:
    mode = way.split()[0]
    kinds = {"fma": "FLOAT32", "wgmma_parts": "FLOAT32", "imma": "of bytes", "wgmma_bytes": "of bytes"}
    kinds |= {"wgmma_byte_windows": "of bytes", "wgmma_part_windows": "FLOAT32"}
    kind = kinds.get(mode, "FLOAT16")
    copied = {"wgmma": ("copied", "GEMM"), "wgmma_windows": ("moved windows",)}
    copied |= {"wgmma_bytes": ("copied",), "wgmma_parts": ("copied",)}
    copied |= dict.fromkeys(("wgmma_byte_windows", "wgmma_part_windows"), ("moved windows",))
    names = copied.get(mode, OF_TILES)
    taken = 0
    for case in CASES:
        if case.name.startswith(f"contraction {kind}") and any(each in case.name for each in names):
            received, expected, modes = results(case, scheduler)
            taken += mode in modes
            # Not every tile takes every order of the operands.
            assert mode in modes or "of copies" in way or mode.startswith("wgmma")
            assert worst_error(received[0], expected[0], case.program.outputs[0], False, case) <= 1
    assert taken


def test_nan_and_infinity_stay_in_their_group(gpu: CudaDevice) -> None:
    values = np.random.default_rng(2).normal(size=(4, 6, 50)).astype(np.float32)
    values[0, 0, 7], values[1, 2, 0], values[3, 5, 49] = np.nan, np.inf, -np.inf
    tensor = TensorDesc(TensorDataType.FLOAT32, values.shape)
    desc = descs.MeanVarianceNormalization1(
        tensor, None, None, tensor, axes=[2], normalize_variance=True, epsilon=1e-5
    )
    instance = compiled_program(program_of(desc)).instantiate()
    source, target = upload(values, gpu), upload(values, gpu)
    instance.bind(0, source.memory.address)
    instance.bind(1, target.memory.address)
    instance.dispatch()
    is_lost = np.isnan(target.to_host()).all(axis=2)
    assert set(map(tuple, np.argwhere(is_lost))) == {(0, 0), (1, 2), (3, 5)}
    assert np.isfinite(target.to_host()[~is_lost]).all()


def test_recording_runs_all_dispatches(gpu: CudaDevice) -> None:
    executable, values = relu(), random_array()
    arrays = [upload(values, gpu) for _ in range(4)]
    instances: list[CudaInstance] = []
    for source, target in pairwise(arrays):
        instance = executable.instantiate()
        instance.bind(0, source.memory.address)
        instance.bind(1, target.memory.address)
        instances.append(instance)
    recording = CapturedLaunches(instances)
    assert not np.array_equal(arrays[-1].to_host(), np.maximum(values, 0)), "recording must not run anything"
    arrays[0].copy_from(-values)
    recording.dispatch()
    np.testing.assert_array_equal(arrays[-1].to_host(), np.maximum(-values, 0))


def there_and_back(arrays: list[DeviceArray]) -> list[CudaInstance]:
    """Kernels of several modes between two arrays of two dimensions, each of them there and back."""
    tensor = TensorDesc(TensorDataType.FLOAT32, arrays[0].sizes)
    kernels: list[descs.OperatorDesc] = [
        descs.ActivationScaledTanh(tensor, tensor, alpha=3.0, beta=1.0),
        descs.ActivationSoftmax1(tensor, tensor, axes=[0]),
        descs.ActivationSoftmax1(tensor, tensor, axes=[1]),
        descs.CumulativeSummation(tensor, tensor, axis=1, axis_direction=0, has_exclusive_sum=False),
        *(
            descs.MeanVarianceNormalization1(
                tensor, None, None, tensor, axes=axes, normalize_variance=True, epsilon=1e-3
            )
            for axes in ([0], [1], [0, 1])
        ),
    ]
    instances = []
    for kernel in kernels:
        for source, target in (arrays, arrays[::-1]):
            instance = compiled_program(program_of(kernel)).instantiate()
            instance.bind(0, source.memory.address)
            instance.bind(1, target.memory.address)
            instances.append(instance)
    return instances


def test_kernels_launched_early_see_what_those_before_wrote(gpu: CudaDevice) -> None:
    """All of them without a pause, in random order, have the results of one after the other."""
    generator = np.random.default_rng(4)
    begin = generator.normal(size=(300, 1000)).astype(np.float32)
    first, second = upload(begin, gpu), upload(begin, gpu)
    instances = there_and_back([first, second])
    order = [2 * int(number) + step % 2 for step, number in enumerate(generator.integers(7, size=200))]
    stream = int(gpu.stream)
    for number in order:
        instances[number].dispatch()
    expected = first.to_host()
    for _ in range(5):
        first.copy_from(begin)
        for number in order:
            instances[number].enqueue(stream)
        gpu.synchronize(stream)
        np.testing.assert_array_equal(first.to_host().view(np.int32), expected.view(np.int32))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("tokens", "width"), [(96, 128), (700, 256)])
def test_products_launched_early_have_the_bits_of_those_launched_later(
    monkeypatch: pytest.MonkeyPatch, tokens: int, width: int
) -> None:
    """Weights are loaded before the kernel before has ended, and attention and normalizations are between."""
    x = np.random.default_rng(1).standard_normal((2, tokens, width)).astype(np.float16)
    early = transformer("cuda", tokens, width)
    found = early(x)["y"]
    for _ in range(20):
        np.testing.assert_array_equal(early(x)["y"].view(np.uint16), found.view(np.uint16))
    monkeypatch.setattr(planning, "EARLY_MODES", ())
    later = transformer("cuda", tokens, width)(x)["y"]
    np.testing.assert_array_equal(found.view(np.uint16), later.view(np.uint16))
    exact = transformer("cpu", tokens, width)(x)["y"].astype(np.float32)
    assert np.abs(found - exact).max() <= 2**-7 * np.abs(exact).max()


def transformer(device: str, tokens: int, width: int, layers: int = 4, batch: int = 2) -> dml.Model:
    """Return layers of a transformer of FLOAT16 with random weights."""
    generator, graph = np.random.default_rng(7), dml.Graph()
    y = graph.input("x", dml.FLOAT16, [batch, tokens, width])

    def product(rows: dml.GraphTensor, columns: int) -> dml.GraphTensor:
        count = rows.sizes[-1]
        weights: Array = (generator.standard_normal((count, columns)) / count**0.5).astype(np.float16)
        return rows @ weights

    def heads(rows: dml.GraphTensor) -> dml.GraphTensor:
        return rows.reshape(batch, tokens, 2, width // 2).permute(0, 2, 1, 3)

    for _ in range(layers):
        normal = dml.mean_variance_normalization1(y, axes=[2], normalize_variance=True)
        q, k, v = (heads(product(normal, width)) for _ in range(3))
        scores = (q @ k.permute(0, 1, 3, 2)) * (width // 2) ** -0.5
        read = (
            (dml.activation_softmax1(scores, axes=[3]) @ v).permute(0, 2, 1, 3).reshape(batch, tokens, width)
        )
        between = y + product(read, width)
        y = between + product(dml.activation_gelu(product(between, 4 * width)), width)
    return graph.compile({"y": y}, device=device)


def test_index_out_of_range_names_the_devices(gpu: CudaDevice) -> None:
    with pytest.raises(InvalidArgument, match="device 99; there are"):
        device(99)


def test_too_much_memory_is_unsupported(gpu: CudaDevice) -> None:
    with pytest.raises(Unsupported, match="out of memory"):
        gpu.allocate(2**50)
