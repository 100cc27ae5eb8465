"""The CUDA target on a device, against the reference. Skips where there is none."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from opendml.errors import InvalidArgument, Unsupported
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import TensorDataType
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.cuda.arrays import as_kind, download, empty_like, stream_of, upload, view
from opendml.targets.cuda.driver import CudaDevice, device
from opendml.targets.cuda.executable import CudaExecutable, CudaInstance
from opendml.targets.cuda.launcher import Recording
from tools.cuda_cases import Case, all_cases
from tools.cuda_check import results, worst_error

CASES = list(all_cases())
SIZES = (3, 1000)


@pytest.fixture(scope="module")
def gpu() -> CudaDevice:
    try:
        return device()
    except Unsupported as error:
        pytest.skip(str(error))


def relu() -> CudaExecutable:
    """RELU of SIZES."""
    tensor = TensorDesc(TensorDataType.FLOAT32, SIZES)
    return CudaExecutable(program_of(descs.ActivationRelu(tensor, tensor)))


def random_array() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(1).normal(size=SIZES).astype(np.float32)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_result_is_the_reference(gpu: CudaDevice, case: Case) -> None:
    received, expected, _ = results(case)
    is_normalization = "normalization" in case.name or "centering" in case.name
    for a, b, layout in zip(received, expected, case.program.outputs, strict=True):
        assert worst_error(a, b, layout, is_normalization) <= 1


def test_nan_and_infinity_stay_in_their_group(gpu: CudaDevice) -> None:
    values = np.random.default_rng(2).normal(size=(4, 6, 50)).astype(np.float32)
    values[0, 0, 7], values[1, 2, 0], values[3, 5, 49] = np.nan, np.inf, -np.inf
    tensor = TensorDesc(TensorDataType.FLOAT32, values.shape)
    desc = descs.MeanVarianceNormalization1(
        tensor, None, None, tensor, axes=[2], normalize_variance=True, epsilon=1e-5
    )
    instance = CudaExecutable(program_of(desc)).instantiate()
    source, target = upload(values, gpu), upload(values, gpu)
    instance.bind(0, source.memory.address)
    instance.bind(1, target.memory.address)
    instance.dispatch()
    is_lost = np.isnan(download(target)).all(axis=2)
    assert set(map(tuple, np.argwhere(is_lost))) == {(0, 0), (1, 2), (3, 5)}
    assert np.isfinite(download(target)[~is_lost]).all()


def test_recording_runs_all_dispatches(gpu: CudaDevice) -> None:
    executable, values = relu(), random_array()
    arrays = [upload(values, gpu) for _ in range(4)]
    instances: list[CudaInstance] = []
    for source, target in pairwise(arrays):
        instance = executable.instantiate()
        instance.bind(0, source.memory.address)
        instance.bind(1, target.memory.address)
        instances.append(instance)
    recording = Recording(instances)
    arrays[0].memory.write((-values).ctypes.data, values.nbytes)
    recording.replay(gpu.stream)
    np.testing.assert_array_equal(download(arrays[-1]), np.maximum(-values, 0))


def test_index_out_of_range_names_the_devices(gpu: CudaDevice) -> None:
    with pytest.raises(InvalidArgument, match="device 99; there are"):
        device(99)


def test_too_much_memory_is_unsupported(gpu: CudaDevice) -> None:
    with pytest.raises(Unsupported, match="out of memory"):
        gpu.allocate(2**50)


@pytest.mark.parametrize("library", ["torch", "cupy", "jax"])
def test_foreign_arrays_are_used_in_place(gpu: CudaDevice, library: str) -> None:
    values = random_array()
    if library == "torch":
        torch = pytest.importorskip("torch")
        source = torch.from_numpy(values).cuda()
    elif library == "cupy":
        source = pytest.importorskip("cupy").asarray(values)
    else:
        jax = pytest.importorskip("jax")
        source = jax.device_put(values, jax.devices("gpu")[0])
    seen = view(source, "input")
    target = empty_like(source, SIZES, seen.layout.type, gpu)
    instance = relu().instantiate()
    instance.bind(0, seen.address)
    instance.bind(1, view(target, "output").address)
    instance.enqueue(stream_of(source, gpu))
    result = as_kind(source, target)
    assert type(result).__module__.partition(".")[0] == type(source).__module__.partition(".")[0]
    received = (
        result.cpu().numpy()
        if library == "torch"
        else result.get()
        if library == "cupy"
        else np.asarray(result)
    )
    np.testing.assert_array_equal(received, np.maximum(values, 0))
