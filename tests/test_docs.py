"""The documentation: it builds without a warning, every operator has its page, and what it shows is true."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import opendml as dml
from opendml import functions
from opendml.catalog.content import Block, CodeBlock, Items, Section, Table
from opendml.catalog.examples import example_of, worked_examples
from opendml.catalog.lists import decision_table
from opendml.catalog.operator_page import operator_page
from opendml.operators.registry import implemented
from opendml.spec.descs import desc_class
from opendml.spec.facts import example_facts
from opendml.spec.schema import operator, operators
from tests.conftest import MadeOnce
from tests.for_each import for_each
from tests.test_project import LOCAL_PATH, ROOT
from tools.docs import markdown
from tools.docs.__main__ import DOCS, external_links
from tools.docs.examples import ExampleError, evaluate, printed

SOURCES = ROOT / "src"
WITH_DOCTESTS = [path for path in sorted(SOURCES.rglob("*.py")) if ">>> " in path.read_text("utf-8")]
RUNNING = [name for name in operators() if name in implemented()]


class _Text(HTMLParser):
    """The text of a page without its marks."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCES), str(ROOT)])}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(made_once: MadeOnce) -> Path:
    """The built documentation."""

    def build(target: Path) -> None:
        built = run_python("-m", "tools.docs", str(target))
        assert built.returncode == 0, built.stderr

    return made_once("docs", build)


def text_of(page: Path) -> str:
    return "".join("".join(_Text(page.read_text("utf-8")).parts).split())


def test_every_operator_has_a_page_with_its_name_its_summary_and_its_fields(site: Path) -> None:
    for name, each in operators().items():
        text = text_of(site / "html" / Path(markdown.path_of(name)).with_suffix(".html"))
        for part in (name, each.summary, *(field.name for field in each.fields)):
            assert "".join(part.split()) in text, (name, part)


def test_the_lists_have_every_operator(site: Path) -> None:
    folder = site / "html" / "operators"
    families = {
        family: text_of(folder / family / "index.html") for family in {o.family for o in operators().values()}
    }
    levels = text_of(folder / "feature_levels.html")
    for name, each in operators().items():
        assert name in families[each.family]
        assert name in levels


def test_links_lead_from_the_first_page_to_every_other(site: Path) -> None:
    top = site / "html"
    pages = {page for page in top.rglob("*.html") if page.name not in ("search.html", "py-modindex.html")}
    reached, waiting = set(), [top / "index.html"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        links = re.findall(r'href="([^"#:]+\.html)', page.read_text("utf-8"))
        found = {(page.parent / link).resolve() for link in links}
        waiting += found & pages - reached
        reached |= found & pages
    assert sorted(pages - reached) == []


def test_no_written_page_is_left_out_of_the_tables_of_contents() -> None:
    pages = list(DOCS.rglob("*.md"))
    assert pages
    assert [page for page in pages if "orphan:" in page.read_text("utf-8")] == []


def test_no_page_names_a_path_of_one_machine(site: Path) -> None:
    pages = list((site / "html").rglob("*.html"))
    assert len(pages) > len(operators())
    for page in pages:
        found = LOCAL_PATH.search(page.read_text("utf-8"))
        assert found is None, (page, found)


def test_external_links_are_listed_and_encrypted(site: Path) -> None:
    links = (site / "external_links.txt").read_text("utf-8").split()
    assert {*external_links(DOCS.rglob("*.md"))} <= {*links}
    assert links
    assert all(link.startswith("https://") for link in links)


def test_a_dead_link_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text(
        "# Title\n\n[nowhere](nowhere.md) and [here](#no-such-heading)\n", "utf-8"
    )
    options = ["-q", "-W", "--keep-going", "-c", str(DOCS), str(tmp_path), str(tmp_path / "html")]
    built = run_python("-m", "sphinx", *options)
    assert built.returncode == 1
    assert "nowhere.md" in built.stderr
    assert "no-such-heading" in built.stderr


@for_each("name", RUNNING)
def test_every_operator_that_runs_has_an_example_that_gives_the_same_on_the_reference(name: str) -> None:
    code, _ = example_of(name)
    last = ast.get_source_segment(code, ast.parse(code).body[-1])
    assert last is not None
    assert last.startswith(f"dml.{operator(name).function_name}(")
    assert last.endswith(")")
    arguments = code.removesuffix(")").rstrip(", \n")
    result, exact = evaluate(code), evaluate(f"{arguments}, device='reference')")
    several = [value if isinstance(value, tuple) else (value,) for value in (result, exact)]
    for own, other in zip(*several, strict=True):
        assert (own is None) == (other is None)
        if own is not None:
            np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-6)


@for_each("name", operators())
def test_every_operator_has_an_example_that_gives_what_its_page_shows(name: str) -> None:
    code, result = example_of(name)
    assert "\n".join(printed(code)) == result
    assert bool(result) == (name in RUNNING)
    if name not in RUNNING:
        assert f"dml.descs.{operator(name).class_name}(" in code
        assert code.endswith("dml.validate(desc)")
    docstring = inspect.getdoc(getattr(functions, operator(name).function_name)) or ""
    shown = textwrap.dedent(docstring.partition("\nExample:\n")[2])
    prompted = [line[4:] for line in shown.splitlines() if line.startswith((">>> ", "... "))]
    assert "\n".join(prompted) == code
    assert shown.endswith(f"\n{result}")


def test_examples_are_of_operators() -> None:
    assert set(example_facts()) == set(operators())


def test_an_example_that_fails_is_named() -> None:
    with pytest.raises(ExampleError, match=r"dml\.activation_relu\(3\)\nInvalidArgument"):
        evaluate("dml.activation_relu(3)")


def test_the_page_of_an_operator_shows_what_its_example_gives() -> None:
    page = operator_page(operator("ACTIVATION_RELU"))
    (example,) = (section for section in page.sections if section.title == "Example")
    assert example.blocks[-1] == CodeBlock("array([0. , 0. , 0. , 0.5, 3. ], dtype=float32)")


def test_the_page_shows_how_the_operator_is_called() -> None:
    page = operator_page(operator("ACTIVATION_CELU"))
    (section,) = (section for section in page.sections if section.title == "Python")
    call, _, desc = section.blocks
    assert isinstance(call, CodeBlock)
    assert call.text.startswith("dml.activation_celu(")
    assert "alpha: float = 1.0" in call.text
    assert isinstance(desc, CodeBlock)
    assert desc.text.startswith("dml.descs.ActivationCelu(")


def prose(name: str) -> Iterator[str]:
    """The texts of an operator's page, without its formulas and programs."""
    page = operator_page(operator(name))
    yield from page.lead
    for section in page.sections:
        for block in section.blocks:
            yield from texts_of(block)


def texts_of(block: Block) -> Iterator[str]:
    match block:
        case CodeBlock():
            return
        case Items(texts):
            yield from texts
        case Table(_, rows):
            yield from (cell for row in rows for cell in row)
        case _:
            yield block


# Marks that follow each other where sentences were glued, an empty bracket, a space before a mark.
BROKEN = re.compile(
    r"(?<!\.)\.[;,:](?!\w)|[;,:]\s*[.;,:](?![.:])|[a-z)]\.\.(?![.\w])|\s\(\s*\)|\w\s[;,](?=\s)|\(\s|\s\)"
)


FORMULAS = sorted((" ".join(each.formula.split()) for each in operators().values()), key=len, reverse=True)


@pytest.mark.parametrize(
    "text", ["strides.; must be 1", "a: ; b", "the end..", "that one (), this", "so , yes", "( a)"]
)
def test_broken_punctuation_is_found(text: str) -> None:
    assert BROKEN.search(text)


@pytest.mark.parametrize(
    "text", ["{..., Width}; 4D", "x[0:3], y", "0 .. 3 is", "(e.g. 2)", "[Sizes[i ..], 3]"]
)
def test_punctuation_of_formulas_is_not_broken(text: str) -> None:
    assert not BROKEN.search(text)


@for_each("name", operators())
def test_the_texts_of_a_page_are_punctuated(name: str) -> None:
    assert [text for text in prose(name) if BROKEN.search(text)] == []


@for_each("name", operators())
def test_docstrings_are_punctuated(name: str) -> None:
    facts = operator(name)
    for made in (getattr(functions, facts.function_name), desc_class(name)):
        text = " ".join((made.__doc__ or "").split("\n\n", 2)[2].partition("\nExample:")[0].split())
        assert not (found := BROKEN.search(text)), text[found.start() - 60 : found.end() + 20]


def least_width(table: Table) -> int:
    """The longest words of all columns but the last, whose words break where they must (opendml.css)."""
    rows = (table.columns, *table.rows)
    words = (
        [len(word) for row in rows for word in row[column].split()] for column in range(len(rows[0]) - 1)
    )
    return sum(max(lengths) for lengths in words)


@for_each("name", operators())
def test_tables_fit_the_page(name: str) -> None:
    blocks = [block for section in operator_page(operator(name)).sections for block in section.blocks]
    assert [block for block in blocks if isinstance(block, Table) and least_width(block) > 70] == []


# What is left of research: doubts, and where in Microsoft's repositories something was read.
RESEARCH = re.compile(
    r"INFERRED|DOUBT|DISAGREEMENT|UNVERIFIED|TBD|\b(inferred|presumably|probably|unclear|re-read|schema)\b"
    r"|\bnot (stated|described|documented|printed|specified)\b|see notes|level history|Page dated|ms\.date"
    r"|\b(the|this|its) page\b|sdk-api|windows-ai-docs|learn\.microsoft|\.(md|png|json)\b"
    r"|\bcommit [0-9a-f]{6,}|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8}\b"
)


@for_each("name", operators())
def test_a_page_states_decisions_and_not_how_they_were_found(name: str) -> None:
    texts = [*prose(name), operator(name).formula, *worked_examples(operator(name))]
    assert [text for text in texts if RESEARCH.search(text)] == []


def test_the_list_of_decisions_has_sentences_and_no_research() -> None:
    texts = [text for _, text in decision_table().rows]
    assert [text for text in texts if RESEARCH.search(text) or BROKEN.search(text) or text[-1] != "."] == []


def test_the_page_shows_formula_and_decisions_of_the_definition() -> None:
    page = operator_page(operator("ACTIVATION_CELU"))
    (definition,) = (section for section in page.sections if section.title == "Definition")
    formula, decision = definition.blocks
    assert isinstance(formula, CodeBlock)
    assert formula.text.startswith("max(0, x) + min(0, alpha * (exp(x / alpha) - 1))")
    assert str(decision).startswith("So near to zero")


def test_the_page_of_a_fusing_operator_lists_activations_with_their_levels() -> None:
    page = operator_page(operator("MEAN_VARIANCE_NORMALIZATION1"))
    (fusion,) = (section for section in page.sections if section.title == "Fusion")
    assert "ACTIVATION_ELU, ACTIVATION_CELU (from 3_0)" in str(fusion.blocks[0])


def test_the_page_says_of_what_the_distance_of_a_sum_is_a_share() -> None:
    page = operator_page(operator("GRU"))
    (accuracy,) = (section for section in page.sections if section.title == "Accuracy")
    (table,) = accuracy.blocks
    assert isinstance(table, Table)
    bounds = {row[0]: row[1] for row in table.rows}
    assert bounds["FLOAT32"].endswith(" * 2^-23 of the greatest result")
    assert bounds["FLOAT16"].endswith(" * 2^-10 of the greatest result")


def test_the_formula_has_a_line_for_each_statement() -> None:
    (formula, *_) = operator_page(operator("MEAN_VARIANCE_NORMALIZATION1")).sections[0].blocks
    assert isinstance(formula, CodeBlock)
    assert [line for line in formula.text.splitlines() if line.startswith("otherwise")]


def test_markdown_shows_texts_as_they_read_and_links_operators_and_enumerations() -> None:
    assert markdown.text("a*b_c < [d] | `e`") == r"a\*b\_c \< \[d\] \| \`e\`"
    assert markdown.text("- 3") == r"\- 3"
    assert markdown.text("2. two") == r"\2. two"
    link = r"[ACTIVATION\_ELU](/operators/activation/activation_elu.md)"
    assert markdown.text("see ACTIVATION_ELU.") == f"see {link}."
    assert markdown.text("see ACTIVATION_ELU.", "ACTIVATION_ELU") == r"see ACTIVATION\_ELU."
    assert markdown.text("PADDING_MODE") == r"[PADDING\_MODE](/reference/enumerations.md#paddingmode)"


def test_markdown_has_a_form_for_every_block() -> None:
    blocks = ("text", Items(("one", "two")), CodeBlock("x = 1", "python"), Table(("A", "B"), (("1", "a|b"),)))
    assert markdown.section(Section("Title", blocks)) == (
        "## Title\n\ntext\n\n- one\n- two\n\n```python\nx = 1\n```\n\n| A | B |\n|---|---|\n| 1 | a\\|b |"
    )


# PyTorch calls functions that it deprecates itself.
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
@pytest.mark.parametrize("path", WITH_DOCTESTS, ids=lambda path: path.stem)
def test_the_examples_in_docstrings_are_true(path: Path) -> None:
    if "torch" in path.relative_to(SOURCES).parts:
        pytest.importorskip("torch", reason="PyTorch is not installed")
    name = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted
    assert result.failed == 0


def test_what_the_table_of_migration_names_is_there() -> None:
    rows = [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in (DOCS / "guide" / "migration.md").read_text("utf-8").splitlines()
        if line.startswith("|") and not line.startswith("|--")
    ]
    assert len(rows) > 25
    here = " ".join(row[-1] for row in rows)
    names = set(re.findall(r"dml\.((?:descs\.)?\w+)", here))
    assert len(names) > 12
    for name in names:
        value: object = dml
        for part in name.split("."):
            value = getattr(value, part)
    for name, given in re.findall(r"dml\.(\w+)\(([^`]*)\)", here):
        keywords = set(re.findall(r"(\w+)=", given.replace("dml.TensorDesc", ""))) - {"strides", "device"}
        if hasattr(functions, name):
            assert keywords <= set(inspect.signature(getattr(functions, name)).parameters), name
