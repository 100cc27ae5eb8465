"""Examples of operators: DirectML's as values, and opendml's as Python."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from opendml.spec.facts import example_facts
from opendml.spec.schema import OperatorSchema

_LONGEST = 400
_MOST = 2


class Example(NamedTuple):
    """A few lines of Python that end with an expression, and the repr of its value ("" for None)."""

    code: str
    result: str


def example_of(name: str) -> Example:
    """Return the example of an operator: a call, or a validation if it cannot run yet."""
    facts = example_facts()[name]
    return Example("\n".join(facts["code"]), "\n".join(facts.get("result", ())))


def worked_examples(operator: OperatorSchema) -> Iterator[str]:
    """Yield the first short examples of DirectML's page, with a line for each field."""
    texts = ("\n".join(_lines(example)) for example in operator.examples)
    return islice((text for text in texts if len(text) <= _LONGEST), _MOST)


def _lines(example: Mapping[str, Any]) -> Iterator[str]:
    values = {**example["inputs"], **example.get("attributes", {}), **example["outputs"]}
    width = max(map(len, values))
    for name, value in values.items():
        yield f"{name:{width}}  {value if isinstance(value, str) else json.dumps(value)}"
