"""Shows what the table of ONNX's schemas has: `python -m tools.onnx_schemas [OPERATOR ...]`.

`--write` renews the table, for operator sets that the installed `onnx` package knows.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import onnx

from opendml.frontends.onnx.schemas import NEWEST_IN_TABLE, TABLE, json_of

Row = dict[str, Any]


def table() -> dict[str, Row]:
    """Return the rows of all operators: what nodes may have, by the first version in which it holds."""
    names = {each.name for each in onnx.defs.get_all_schemas_with_history() if not each.domain}
    rows = {name: _row(name) for name in sorted(names)}
    return {name: row for name, row in rows.items() if row}


def text(rows: dict[str, Row]) -> str:
    """Return the table as text, with a line for each operator."""
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _row(name: str) -> Row:
    row: Row = {}
    for version in range(1, NEWEST_IN_TABLE + 1):
        try:
            facts = json_of(onnx.defs.get_schema(name, version, ""))
        except onnx.defs.SchemaError:  # It is newer.
            continue
        if not row or facts != next(reversed(row.values())):
            row[str(version)] = facts
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*", metavar="OPERATOR")
    parser.add_argument("--write", action="store_true", help="renew the table")
    given = parser.parse_args()
    rows = table()
    if given.write:
        TABLE.write_text(text(rows), encoding="utf-8")
    else:
        print(text({name: rows[name] for name in given.operators or rows}))


if __name__ == "__main__":
    main()
