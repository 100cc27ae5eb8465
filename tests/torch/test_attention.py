"""Attention of PyTorch's graphs: converted as a whole where no gradient is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from opendml.frontends.torch.attention import with_attention  # noqa: E402
from opendml.frontends.torch.backend import backend  # noqa: E402
from opendml.program.program import Program  # noqa: E402
from opendml.targets.cpu.planning import plan as plan_for_processor  # noqa: E402
from tests.attention_modes import modes_on, noted_programs, planned_modes  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

attend = torch.nn.functional.scaled_dot_product_attention
CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "plain": (4, {}),
    "scaled": (4, {"scale": 0.3}),
    "causal": (4, {"is_causal": True}),
    "of shared keys": (2, {"enable_gqa": True}),
    "causal of shared keys": (2, {"enable_gqa": True, "is_causal": True}),
    "with a bias": (4, {"attn_mask": torch.linspace(-1, 1, 40 * 56).reshape(40, 56).half()}),
    "with a mask": (4, {"attn_mask": torch.arange(40)[:, None] > torch.arange(56)[None]}),
}


def tensors(shared: int = 4, queries: int = 40, keys: int = 56) -> list[Any]:
    torch.manual_seed(0)
    sizes = ((2, 4, queries, 64), (2, shared, keys, 64), (2, shared, keys, 64))
    return [torch.randn(each).half() for each in sizes]


@pytest.mark.parametrize("case", CASES)
def test_attention_of_float16_is_one_warpgroup_product(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, options = CASES[case]
    given = tensors(shared)
    torch._dynamo.reset()
    with torch.no_grad(), planned_modes(monkeypatch) as modes:
        found = torch.compile(lambda *x: attend(*x, **options), backend=backend)(*given)
    exact = attend(
        *(each.double() for each in given),
        **{
            name: value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
            for name, value in options.items()
        },
    )
    assert [mode for mode in modes if mode != "reduce"] == ["wgmma_chain"]
    assert float((found.double() - exact).abs().max()) <= 2**-9 * float(exact.abs().max())


def test_queries_that_a_mask_hides_all_keys_from_are_zero() -> None:
    mask = torch.ones(40, 56, dtype=torch.bool)
    mask[3] = False
    torch._dynamo.reset()
    with torch.no_grad():
        found = torch.compile(lambda *x: attend(*x, attn_mask=mask), backend=backend)(*tensors())
    assert bool((found[:, :, 3] == 0).all())
    assert bool(found.isfinite().all())


def test_layers_that_share_a_mask_reduce_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def layers(q: Any, k: Any, v: Any, mask: Any) -> Any:
        for _ in range(4):
            q = attend(q, k, v, mask)
        return q

    torch._dynamo.reset()
    with torch.no_grad(), planned_modes(monkeypatch) as modes:
        torch.compile(layers, backend=backend)(*tensors(), CASES["with a mask"][1]["attn_mask"])
    assert sorted(modes) == ["reduce", *["wgmma_chain"] * 4]


def test_gradients_are_those_of_pytorch() -> None:
    results = []
    for function in (attend, torch.compile(lambda *x: attend(*x), backend=backend)):
        given = [each.float().requires_grad_() for each in tensors()]
        torch._dynamo.reset()
        function(*given).sum().backward()
        results.append([each.grad for each in given])
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def over_growing_cache(q: Any, k: Any, v: Any, past_k: Any, past_v: Any) -> Any:
    keys, values = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
    return attend(q, keys, values, enable_gqa=True), keys, values


def over_static_cache(q: Any, k: Any, v: Any, past_k: Any, past_v: Any) -> Any:
    place, seen = torch.tensor([39]), torch.arange(past_k.shape[2])[None, None, None] <= 39
    keys, values = past_k.index_copy(2, place, k), past_v.index_copy(2, place, v)
    return attend(q, keys, values, seen, enable_gqa=True), keys, values


@pytest.mark.parametrize("function", [over_growing_cache, over_static_cache])
@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16"])
def test_one_query_over_a_cache_is_one_kernel_of_attention(
    function: Callable[..., Any], type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU. New rows of a static cache are read beside it. Other kernels write the cache."""
    torch.manual_seed(0)
    sizes = [(2, 8, 1, 64), *[(2, 2, 1, 64)] * 2, *[(2, 2, 128, 64)] * 2]
    given = [torch.randn(each).to(getattr(torch, type)) for each in sizes]
    torch._dynamo.reset()
    with torch.no_grad(), planned_modes(monkeypatch) as modes:
        found = torch.compile(function, backend=backend)(*given)
        wanted = function(*given)
    tolerance = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[type]
    for own, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(own, other, rtol=tolerance, atol=tolerance)
    assert sum("chain" in mode for mode in modes) == 1
    assert {mode for mode in modes if "chain" not in mode} <= {"pointwise", "scatter"}


def test_attention_with_dropout_is_left_as_it_is() -> None:
    targets: list[Any] = []

    def noting(module: Any, inputs: Any) -> Any:
        with_attention(module)
        targets.extend(node.target for node in module.graph.nodes)
        return module.forward

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(lambda *x: attend(*x, dropout_p=0.5), backend=noting)(*tensors())
    assert attend in targets


def test_sizes_of_attention_may_be_symbols() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda *x: attend(*x), backend=backend, dynamic=True)
    for queries, keys in ((5, 7), (6, 9)):
        given = [each.float() for each in tensors(queries=queries, keys=keys)]
        torch.testing.assert_close(compiled(*given), attend(*given), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("has_bias", [False, True])
def test_attention_under_autocast_has_the_type_that_it_casts_to(has_bias: bool) -> None:
    query, *rest = (each.float() for each in tensors(queries=5, keys=7))
    bias = torch.linspace(-1, 1, 35).reshape(5, 7) if has_bias else None

    def casting(query: Any, key: Any, value: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.float16):
            return attend(query, key, value, attn_mask=bias)

    torch._dynamo.reset()
    expected, found = casting(query, *rest), torch.compile(casting, backend=backend)(query, *rest)
    assert found.dtype is torch.float16
    torch.testing.assert_close(found, expected, rtol=4e-3, atol=4e-3)


def test_gradients_may_be_asked_for_within_a_graph_alone() -> None:
    def within(*given: Any) -> Any:
        with torch.enable_grad():
            return attend(*given)

    given = [each.float().requires_grad_() for each in tensors(queries=5, keys=7)]
    torch._dynamo.reset()
    with torch.no_grad():
        result = torch.compile(within, backend=backend)(*given)
    assert result.requires_grad


def heads(**options: Any) -> Any:
    torch.manual_seed(0)
    return torch.nn.MultiheadAttention(128, 2, batch_first=True, **options)


MASKS: dict[str, dict[str, Any]] = {
    "plain": {},
    "with a bias": {"attn_mask": torch.linspace(-1, 1, 40 * 40).reshape(40, 40).half()},
    "with hidden keys": {"key_padding_mask": torch.arange(40)[None] >= torch.tensor([[40], [25]])},
}


@pytest.mark.parametrize("case", MASKS)
def test_attention_of_a_module_is_one_warpgroup_product(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = heads().half().eval(), torch.randn(2, 40, 128).half()

    def called(x: Any) -> Any:
        return module(x, x, x, need_weights=False, **MASKS[case])[0]

    torch._dynamo.reset()
    with torch.no_grad(), planned_modes(monkeypatch) as modes:
        found, expected = torch.compile(called, backend=backend)(x), called(x)
    assert modes.count("wgmma_chain") == 1
    assert "fma" not in modes
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dynamic", [False, True], ids=["fixed sizes", "open sizes"])
@pytest.mark.parametrize("need_weights", [False, True], ids=["results", "weights"])
def test_modules_of_attention_compute_what_pytorch_does(need_weights: bool, dynamic: bool) -> None:
    module = heads(kdim=48, vdim=32, bias=False).eval()
    compiled = torch.compile(module, backend=backend, dynamic=dynamic)
    torch._dynamo.reset()
    for queries, keys in ((5, 7), (6, 9)) if dynamic else ((5, 7),):
        given = [torch.randn(3, *size) for size in ((queries, 128), (keys, 48), (keys, 32))]
        with torch.no_grad():
            found, expected = (each(*given, need_weights=need_weights) for each in (compiled, module))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_gradients_of_a_module_of_attention_are_those_of_pytorch() -> None:
    module, results = heads(), []
    for function in (module, torch.compile(module, backend=backend)):
        x = torch.linspace(-1, 1, 2 * 9 * 128).reshape(2, 9, 128).requires_grad_()
        torch._dynamo.reset()
        module.zero_grad()
        function(x, x, x, need_weights=False)[0].square().sum().backward()
        results.append([x.grad, *(each.grad for each in module.parameters())])
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


def test_modules_of_attention_with_dropout_stay_random() -> None:
    module, x = heads(dropout=0.5).train(), torch.randn(2, 9, 128)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: module(x, x, x, need_weights=False)[0], backend=backend)
    with torch.no_grad():
        first, second = compiled(x), compiled(x)
    assert not torch.equal(first, second)


def test_modules_of_attention_under_autocast_have_the_type_that_it_casts_to() -> None:
    module, x = heads().eval(), torch.randn(2, 9, 128)

    def casting(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return module(x, x, x, need_weights=False)[0]

    torch._dynamo.reset()
    with torch.no_grad():
        expected, found = casting(x), torch.compile(casting, backend=backend)(x)
    assert found.dtype is expected.dtype
    torch.testing.assert_close(found, expected, rtol=4e-2, atol=2e-2)


def encoder(transformers: Any, layers: int) -> Any:
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=128, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=512
    )
    return transformers.BertModel(config, add_pooling_layer=False)


def decoder(transformers: Any, layers: int) -> Any:
    config = transformers.GPT2Config(
        vocab_size=64, n_embd=128, n_layer=layers, n_head=2, n_positions=64, use_cache=False
    )
    return transformers.GPT2Model(config)


def program_of_model(model: Any, *, is_masked: bool, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Return the one program of a model of float16 with constant weights."""
    programs: list[Program] = []
    given = {"input_ids": torch.randint(0, 64, (2, 64))}
    if is_masked:
        given["attention_mask"] = (torch.arange(64)[None] < torch.tensor([[64], [40]])).long()
    torch._dynamo.reset()
    with torch.no_grad(), noted_programs(monkeypatch, programs.append):
        torch.compile(model.eval().half(), backend=backend, options={"freezing": True})(**given)
    (program,) = programs
    return program


@pytest.mark.parametrize("is_masked", [False, True], ids=["all tokens", "masked"])
@pytest.mark.parametrize(("make", "kernels_of_a_layer"), [(encoder, 9), (decoder, 7)], ids=["BERT", "GPT-2"])
def test_layers_of_transformers_have_one_attention_kernel_each(
    make: Callable[..., Any], kernels_of_a_layer: int, is_masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others multiply, four in a decoder and six in an encoder, or normalize. Masks are made once."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    program = program_of_model(make(transformers, 2), is_masked=is_masked, monkeypatch=monkeypatch)
    on_processor = [mode for (mode,) in plan_for_processor(program).launches]
    for modes, chain in (
        (modes_on(program, 80), "mma_chain"),
        (modes_on(program, 90), "wgmma_chain"),
        (on_processor, "contraction_chain"),
    ):
        first, second = (number for number, mode in enumerate(modes) if mode == chain)
        assert second - first == kernels_of_a_layer, modes
