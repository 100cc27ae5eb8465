"""The page of an explanation: one file that needs no network, well-formed, and alive in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from opendml.runtime.explain.explanation import ExplainedGraph
from tests.explain.test_explain import layers

VOID = {"meta", "link", "br", "img", "input", "hr"}
CHROMIUM = shutil.which("chromium")


@cache
def explanation() -> ExplainedGraph:
    return layers().explain()


class Page(HTMLParser):
    """The tags of a page: which are open, and what every one has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_asks_for_nothing() -> None:
    text = explanation().html()
    page = Page(text)
    assert page.open == []
    assert {name for _, attributes in page.tags for name in attributes} & {"src", "href", "srcset"} == set()
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", text)
    assert {*re.findall(r"https?://[^\"\s]+", text)} <= {"http://www.w3.org/2000/svg"}


def test_rows_are_the_kernels_from_the_largest_to_the_smallest() -> None:
    found = explanation()
    rows = [
        attributes
        for tag, attributes in Page(found.html()).tags
        if tag == "tr" and "data-kernel" in attributes
    ]
    assert [row["data-kernel"] for row in rows] == [str(each.number) for each in found.largest_first]


def test_the_graph_has_a_box_for_each_operator_and_input_and_a_line_for_each_edge() -> None:
    found = explanation()
    classes = [attributes.get("class") for _, attributes in Page(found.html()).tags]
    assert classes.count("operator") == len(found.operators)
    assert classes.count("input") == 1
    assert classes.count("edge") == 5
    assert classes.count("temporary") == len(found.temporaries)


def test_names_are_escaped() -> None:
    text = replace(explanation(), title="<script>alert(1)</script>", device="<b>&").html()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<b>" not in text
    assert Page(text).open == []


def test_what_is_saved_is_the_page(tmp_path: Path) -> None:
    explanation().save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == explanation().html()


NODE = """
const part = kernels => {
  const listeners = {};
  const classes = new Set();
  return {
    dataset: { kernel: kernels }, classes,
    classList: { toggle: (name, on) => on ? classes.add(name) : classes.delete(name) },
    addEventListener: (name, run) => { listeners[name] = run; },
    fire: name => listeners[name](),
  };
};
const parts = ["0", "1", "0 1", ""].map(part);
const document = { querySelectorAll: () => parts };
new Function("document", SCRIPT)(document);
const lit = () => parts.map(each => each.classes.has("lit"));
const seen = [];
for (const [number, name] of [[0, "mouseenter"], [2, "mouseenter"], [2, "mouseleave"]]) {
  parts[number].fire(name);
  seen.push(lit());
}
console.log(JSON.stringify(seen));
"""


def test_the_script_lights_up_what_belongs_to_a_kernel() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not here")
    script = re.findall(r"<script>(.*?)</script>", explanation().html(), re.DOTALL)[-1]
    program = NODE.replace("SCRIPT", json.dumps(script))
    ran = subprocess.run([node, "-e", program], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(ran.stdout) == [
        [True, False, True, False],
        [True, True, True, False],
        [False, False, False, False],
    ]


def test_a_browser_shows_the_page_without_an_error_or_a_request(tmp_path: Path) -> None:
    browsers = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium is here")
    found = explanation()
    path = tmp_path / "page.html"
    found.save(path)
    with browsers.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--headless"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        errors: list[object] = []
        requests: list[str] = []
        page.on("pageerror", lambda error: errors.append(error))
        page.on("console", lambda message: errors.append(message.text))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        first = page.locator("#kernels tbody tr").first
        number = str(found.largest_first[0].number)
        assert first.get_attribute("data-kernel") == number
        # The total and the largest kernels are seen at once, and nothing is wider than the window.
        assert page.locator(".total").bounding_box()["y"] < 200
        assert first.bounding_box()["y"] < 400
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        first.hover()
        lit = page.locator(".operator.lit").count()
        assert lit == sum(int(number) in each.kernels for each in found.operators)
        assert errors == []
        assert requests == [path.as_uri()]
        browser.close()
