"""Caches that grow in place on a CUDA device, and attention of few queries over them; skipped where no device
is."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest

import opendml as dml
from tests.plans import plans_of

pytestmark = pytest.mark.usefixtures("gpu")

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")


def attention(type: dml.TensorDataType, heads: int, shared: int, size: int, batch: int = 2) -> dml.Model:
    """Attention of new queries over a cache that grows by as many rows."""
    graph = dml.Graph()
    q = graph.input("q", type, [batch, shared, heads // shared, size])
    new = {name: graph.input(name, type, [batch, shared, 1, size]) for name in ("k", "v")}
    past = {name: graph.input(f"past_{name}", type, [batch, shared, "length", size]) for name in new}
    present = {name: dml.join([past[name], new[name]], axis=2) for name in new}
    wide = {name: dml.cast(each, output_type="FLOAT32") for name, each in (present | {"q": q}).items()}
    scores = dml.gemm(wide["q"], wide["k"], trans_b="TRANSPOSE", alpha=size**-0.5)
    y = dml.cast(dml.gemm(dml.activation_softmax1(scores, axes=[3]), wide["v"]), output_type=type)
    outputs = {"y": y, **{f"present_{name}": each for name, each in present.items()}}
    return graph.compile(outputs, device="cuda")


def attended(q: Any, k: Any, v: Any) -> Any:
    """Attention in float64."""
    q, k, v = (each.double() for each in (q, k, v))
    return torch.softmax(q @ k.transpose(2, 3) * q.shape[3] ** -0.5, dim=3) @ v


CASES = [
    (type, *sizes)
    for type in ("float32", "float16")
    for sizes in ((12, 12, 64), (8, 2, 128), (15, 1, 64), (4, 4, 24), (6, 3, 256))
]


@pytest.mark.parametrize(("type", "heads", "shared", "size"), CASES)
def test_bound_caches_have_only_new_rows_written(type: str, heads: int, shared: int, size: int) -> None:
    dtype, batch, capacity = getattr(torch, type), 2, 6000
    model = attention(getattr(dml, type.upper()), heads, shared, size)
    buffers = {
        name: torch.full((batch, shared, capacity, size), torch.nan, device="cuda", dtype=dtype)
        for name in "kv"
    }
    for each in buffers.values():
        each[:, :, :40] = torch.randn(batch, shared, 40, size, device="cuda", dtype=dtype)
    for length in (40, 41, 42, 700, 701, 5000, 5001, 43):
        for each in buffers.values():
            each[:, :, :length] = torch.randn(batch, shared, length, size, device="cuda", dtype=dtype)
            each[:, :, length:] = torch.nan
        before = {name: each.clone() for name, each in buffers.items()}
        q = torch.randn(batch, shared, heads // shared, size, device="cuda", dtype=dtype)
        new = {name: torch.randn(batch, shared, 1, size, device="cuda", dtype=dtype) for name in "kv"}
        y = torch.full_like(q, torch.nan)
        model.run(
            {"q": q, **new, **{f"past_{name}": each[:, :, :length] for name, each in buffers.items()}},
            {"y": y, **{f"present_{name}": each[:, :, : length + 1] for name, each in buffers.items()}},
        )
        wanted = attended(q, *(each[:, :, : length + 1] for each in buffers.values()))
        bound = wanted.abs().max() * (1.5 * 2**-10 if type == "float16" else 2e-6)
        assert (y.double() - wanted).abs().max() <= bound
        for name, each in buffers.items():
            assert torch.equal(each[:, :, length : length + 1], new[name])
            each[:, :, length] = before[name][:, :, length]
            assert torch.equal(each.nan_to_num(7), before[name].nan_to_num(7))


def test_states_in_threads_have_right_results_while_others_make_plans() -> None:
    model, problems = attention(dml.FLOAT32, 4, 4, 24), list[object]()

    def rows(generator: Any, count: int) -> Any:
        return torch.randn(2, 4, count, 24, generator=generator).numpy()

    def work(number: int) -> None:
        chosen, generator = random.Random(number), torch.Generator().manual_seed(number)
        state = model.state({"present_k": "past_k", "present_v": "past_v"})
        for _ in range(12):
            length = 1 << chosen.randrange(11) | chosen.randrange(1, 9)
            names = ("past_k", "past_v", "q", "k", "v")
            given = {name: rows(generator, length if name[:4] == "past" else 1) for name in names}
            y = (model if chosen.random() < 0.3 else state.run)(given)["y"]
            both = (np.concatenate([given[f"past_{name}"], given[name]], axis=2) for name in "kv")
            wanted = attended(*(torch.from_numpy(each) for each in (given["q"], *both))).numpy()
            if not np.abs(y - wanted).max() <= 1e-5:
                problems.append((number, length, np.abs(y - wanted).max()))

    def noted(number: int) -> None:
        try:
            work(number)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=noted, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not problems


def test_a_state_keeps_tensors_on_the_device_and_its_plans_serve_new_lengths() -> None:
    model = attention(dml.FLOAT16, 8, 2, 128)
    state = model.state({"present_k": "past_k", "present_v": "past_v"}, capacity=3000)

    def rows(count: int, rows: int) -> Any:
        return torch.randn(2, 2, count, 128, device="cuda", dtype=torch.float16)

    kept = {name: rows(1500, 2) for name in "kv"}
    given = {f"past_{name}": each for name, each in kept.items()}
    for step in range(12):
        q, new = rows(4, 8), {name: rows(1, 2) for name in "kv"}
        outputs = state.run({"q": q, **new, **given})
        given = {}
        kept = {name: torch.cat([kept[name], new[name]], dim=2) for name in "kv"}
        wanted = attended(q, *kept.values())
        assert (outputs["y"].double() - wanted).abs().max() <= 1.5 * 2**-10 * wanted.abs().max()
        if step == 1:
            count = len(plans_of(model))
    assert len(plans_of(model)) == count
    assert torch.equal(torch.from_dlpack(state["past_k"]), kept["k"])
    host = {name: each.cpu().numpy() for name, each in (new | {"q": q}).items()}
    found = state.run(host)["y"]
    assert isinstance(found, np.ndarray)
    assert state.length == 1513


def test_values_without_a_finite_sum_are_taken_in_again() -> None:
    q, k, v = (torch.randn(1, 2, rows, 64, device="cuda") for rows in (2, 3000, 3000))
    v[0, 0, :, 3], v[0, 0, 5, 4], v[0, 1, 7, 5] = 3e38, torch.inf, torch.nan
    graph = dml.Graph()
    a, b, c = (
        graph.input(name, dml.FLOAT32, list(each.shape)) for name, each in zip("qkv", (q, k, v), strict=True)
    )
    scores = dml.gemm(a, b, trans_b="TRANSPOSE", alpha=0.125)
    y = dml.gemm(dml.activation_softmax1(scores, axes=[3]), c)
    found = graph.compile({"y": y}, device="cuda")(q=q, k=k, v=v)["y"]
    wanted = attended(q, k, v).float()
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)
