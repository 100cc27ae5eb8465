"""The recipe of the guide for `generate()` of transformers, with both kinds of caches."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from opendml.frontends.torch.report import explained  # noqa: E402

# PyTorch's own compiler uses what it says is deprecated.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)


@pytest.mark.parametrize("cache", [None, "static"])
def test_generate_writes_the_text_of_pytorch(cache: str | None) -> None:
    config = transformers.GPT2Config(
        n_layer=1, n_head=2, n_embd=32, vocab_size=50, n_positions=80, bos_token_id=1, eos_token_id=2
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    tokens = torch.randint(3, 50, (1, 7))
    options: dict[str, Any] = {
        "max_new_tokens": 12,
        "min_new_tokens": 12,
        "do_sample": False,
        "pad_token_id": 0,
    }
    expected = model.generate(tokens, **options)
    model.forward = torch.compile(model.forward, backend="opendml")
    with explained() as explanation:
        first = model.generate(tokens, cache_implementation=cache, **options)
        count = len(explanation.graphs)
        again = model.generate(tokens, cache_implementation=cache, **options)
    assert torch.equal(first, expected)
    assert torch.equal(again, expected)
    assert count == len(explanation.graphs) <= 4
    assert not any(report.left for report in explanation.graphs)
