"""`opendml ops`: lists and descriptions of operators."""

from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

from opendml.catalog.names import find_operators, framework_names
from opendml.cli import main
from opendml.operators.registry import implemented
from opendml.spec.enums import FeatureLevel
from opendml.spec.schema import operators
from tests.for_each import for_each


def _ops(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["ops", *arguments])


def test_list_has_every_operator_with_its_level_and_whether_it_runs() -> None:
    result = _ops()
    assert result.exit_code == 0
    rows = {
        line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line and line[0].isupper()
    }
    for operator in operators().values():
        level = operator.introduced.name.removeprefix("LEVEL_")
        runs = "yes" if operator.name in implemented() else "-"
        assert rows[operator.name] == [operator.family, level, runs]
    assert (
        f"{len(operators())} operators at DML_FEATURE_LEVEL_6_4; {len(implemented())} run." in result.stdout
    )


@pytest.mark.parametrize("level", FeatureLevel)
def test_list_at_a_level_has_only_the_operators_of_that_level(level: FeatureLevel) -> None:
    name = level.name.removeprefix("LEVEL_")
    shown = [line.split()[0] for line in _ops("--feature-level", name).stdout.splitlines()[1:-2]]
    assert shown == [operator.name for operator in operators().values() if operator.introduced <= level]


@for_each("name", operators())
def test_every_operator_is_described(name: str) -> None:
    result = _ops(name)
    operator = operators()[name]
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert text.startswith(f"{name} ({operator.family}, from DML_FEATURE_LEVEL_")
    assert "".join(operator.summary.split()) in text.replace(" ", "")
    for field in operator.fields:
        assert field.name in text


def test_ranges_and_rules_that_the_page_does_not_say_are_shown() -> None:
    text = " ".join(_ops("AVERAGE_POOLING1").stdout.split())
    assert "Must be at least 1." in text
    assert "(size + paddings - span) / stride + 1, rounded down or up" in text


def test_rules_of_a_level_are_shown() -> None:
    rule = "With Spatial FALSE mean and variance are not repeated"
    assert rule in " ".join(_ops("BATCH_NORMALIZATION", "--feature-level", "3_1").stdout.split())
    assert rule not in " ".join(_ops("BATCH_NORMALIZATION").stdout.split())


@pytest.mark.parametrize(
    "name",
    [
        "ACTIVATION_CELU",
        "DML_OPERATOR_ACTIVATION_CELU",
        "activation_celu",
        "ActivationCelu",
        "activation-celu",
        "DML_ACTIVATION_CELU_OPERATOR_DESC",
    ],
)
def test_operators_are_found_in_every_spelling(name: str) -> None:
    assert _ops(name).stdout.startswith("ACTIVATION_CELU (")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("matmull", "did you mean GEMM or "),
        ("normalization", "did you mean BATCH_NORMALIZATION or "),
        ("avg_pool", "did you mean AVERAGE_POOLING or "),
        ("ACTIVATION_HARDSIGMOD", "did you mean ACTIVATION_HARD_SIGMOID or "),
        ("DML_GEMM_OPERATOR_DES", "did you mean GEMM"),
        ("xyzzy", "`opendml ops` lists them all"),
        ("", "`opendml ops` lists them all"),
    ],
)
def test_unknown_operators_bring_suggestions(name: str, hint: str) -> None:
    result = _ops(name)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"no operator is named {name}; {hint}" in result.stderr


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("celu", "ACTIVATION_CELU"),
        ("Celu", "ACTIVATION_CELU"),
        ("hard_sigmoid", "ACTIVATION_HARD_SIGMOID"),
        ("HardSigmoid", "ACTIVATION_HARD_SIGMOID"),
        ("hard-sigmoid", "ACTIVATION_HARD_SIGMOID"),
        ("add", "ELEMENT_WISE_ADD"),
        ("logical_and", "ELEMENT_WISE_LOGICAL_AND"),
        ("MatMul", "GEMM"),
        ("matmul", "GEMM"),
        ("ReduceLogSumExp", "REDUCE"),
        ("where", "ELEMENT_WISE_IF"),
        ("cat", "JOIN"),
        ("conv2d", "CONVOLUTION"),
        ("conv_transpose2d", "CONVOLUTION"),
        ("convTranspose2d", "CONVOLUTION"),
        ("silu", "ACTIVATION_SWISH"),
        ("reduce", "REDUCE"),
        ("slice", "SLICE"),
    ],
)
def test_operators_are_found_by_the_names_that_others_give_them(name: str, operator: str) -> None:
    result = _ops(name)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{operator} (")


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("tanh", ["ELEMENT_WISE_TANH", "ACTIVATION_TANH"]),
        ("LpPool", ["LP_POOLING", "LP_POOLING1"]),
        ("layer_norm", ["MEAN_VARIANCE_NORMALIZATION1", "MEAN_VARIANCE_NORMALIZATION2"]),
        ("Softmax", ["ACTIVATION_SOFTMAX", "ACTIVATION_SOFTMAX1"]),
        ("linear", ["GEMM", "ACTIVATION_LINEAR"]),
    ],
)
def test_of_several_operators_with_a_name_each_has_a_line(name: str, candidates: list[str]) -> None:
    result = _ops(name)
    assert result.exit_code == 0
    title, *lines = result.stdout.splitlines()
    assert title == f"{name} may be one of {len(candidates)} operators:"
    assert lines == [f"  {candidate}: {operators()[candidate].summary}" for candidate in candidates]


def test_aliases_name_operators_that_exist_and_lead_to_them() -> None:
    for name, meant in framework_names():
        assert meant <= operators().keys(), name
        found = {operator.name for operator in find_operators(name)}
        # A name that DirectML has too means DirectML's operator.
        own = {each for each in found if each.replace("_", "") == name.replace("_", "").upper()}
        assert found == own or meant <= found, name


def test_operators_without_another_name_are_few() -> None:
    """Gradients, and what no other system has as an operator."""
    named = set().union(*(meant for _, meant in framework_names()))
    unnamed = {name for name in operators() if name not in named and "_GRAD" not in name}
    assert unnamed == {"ELEMENT_WISE_BIT_COUNT", "ELEMENT_WISE_DIFFERENCE_SQUARE"}


def test_description_at_a_level_shows_the_table_of_that_level() -> None:
    types = _ops("ACTIVATION_HARD_SIGMOID", "--feature-level", "2_1").stdout
    assert "4 to 5" in types
    assert "1 to 8" not in types


def test_description_below_the_operators_level_says_so() -> None:
    assert (
        "does not exist at DML_FEATURE_LEVEL_2_0" in _ops("ACTIVATION_CELU", "--feature-level", "2_0").stdout
    )


def test_reduce_has_a_table_for_each_group_of_functions() -> None:
    text = _ops("REDUCE", "--feature-level", "3_0").stdout
    assert "with ARGMIN, ARGMAX:" in text
    assert "SUM" in text.split("Types and dimensions")[1]


def test_unknown_level_is_an_error() -> None:
    result = _ops("--feature-level", "7_0")
    assert result.exit_code == 2
    assert "7_0" in result.stderr


def test_piped_output_is_plain_text_of_a_fixed_width() -> None:
    text = _ops("MEAN_VARIANCE_NORMALIZATION1").stdout
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 110
