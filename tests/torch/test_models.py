"""Known networks with random weights compute and train as in PyTorch. They take minutes to compile, so they
run only where OPENDML_TEST_MODELS is set."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import opendml as dml  # noqa: E402
from opendml.frontends.torch.report import explained  # noqa: E402
from tests.torch.training import require_equal_training  # noqa: E402
from tests.vision import torchvision  # noqa: E402

pytestmark = [
    pytest.mark.skipif("OPENDML_TEST_MODELS" not in os.environ, reason="OPENDML_TEST_MODELS is not set"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]

SIZES = {"squeezenet1_1": 64, "alexnet": 64, "inception_v3": 96, "maxvit_t": 224}
"""Of the images; others are of 32 by 32."""

OPTIONS: dict[str, dict[str, Any]] = {
    "googlenet": {"init_weights": False},
    "inception_v3": {"init_weights": False},
    "vit_b_16": {"image_size": 32},
}

FAMILIES = [
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "efficientnet_v2_s",
    "googlenet",
    "inception_v3",
    "maxvit_t",
    "mnasnet0_5",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "resnet18",
    "resnext50_32x4d",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "swin_t",
    "swin_v2_t",
    "vgg11",
    "vgg11_bn",
    "vit_b_16",
    "wide_resnet50_2",
]

TRAINED = ["alexnet", "resnet18", "squeezenet1_1"]


@pytest.fixture(scope="module")
def models() -> Any:
    """torchvision's models, which use none of its compiled operators."""
    return torchvision().models


def network(models: Any, name: str, count: int = 2, size: int = 32) -> tuple[Any, Any]:
    """A network with random weights, none of which hide others by being 0, and so many images for it, of so
    many rows at least."""
    model, size = getattr(models, name)(weights=None, **OPTIONS.get(name, {})), SIZES.get(name, size)
    for parameter in model.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, 0, 0.02)
    return model, torch.randn(count, 3, size, size)


@pytest.mark.parametrize("name", FAMILIES)
def test_classifiers_of_images_agree_with_pytorch(name: str, models: Any) -> None:
    model, x = network(models, name)
    model.eval()
    with torch.no_grad(), explained() as explanation:
        result = torch.compile(model, backend=dml.torch.backend)(x)
        expected = model(x)
    assert [graph.left.total() for graph in explanation.graphs] == [0]
    scale = expected.abs().max().item()
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4 * scale)


@pytest.mark.parametrize("name", TRAINED)
def test_gradients_of_classifiers_agree_with_pytorch(name: str, models: Any) -> None:
    """Normalizations over few elements have gradients that rounding decides, so there are more than two."""
    model, x = network(models, name, 4, 64)
    other = copy.deepcopy(model)
    for function in (torch.compile(model, backend=dml.torch.backend), other):
        torch.manual_seed(0)
        with explained():
            torch.nn.functional.cross_entropy(function(x), torch.tensor([3, 1, 4, 1])).backward()
    for (parameter, found), wanted in zip(model.named_parameters(), other.parameters(), strict=True):
        distance = (found.grad - wanted.grad).norm() / wanted.grad.norm().clamp_min(1e-6)
        assert distance < 1e-3, parameter


def test_an_encoder_trains_as_in_pytorch() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    ids, labels = torch.randint(0, 40, (2, 7)), torch.tensor([0, 1])
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    model = transformers.BertForSequenceClassification(config)
    require_equal_training(model, lambda model: model(ids, attention_mask=mask, labels=labels).loss)


def test_a_decoder_trains_as_in_pytorch() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.GPT2Config(
        vocab_size=40,
        n_positions=16,
        n_embd=16,
        n_layer=1,
        n_head=2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=1,
        eos_token_id=1,
    )
    ids = torch.randint(0, 40, (2, 7))
    model = transformers.GPT2LMHeadModel(config)
    require_equal_training(model, lambda model: model(ids, labels=ids).loss)
