"""Programs of `torch.export` in `dml.torch.load`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn

import opendml as dml  # noqa: E402

# PyTorch's own compiler uses what it says is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


class Counter(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """A module with a parameter, a buffer that it writes, another one, and a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)
        self.register_buffer("calls", torch.zeros(4))
        self.register_buffer("scale", torch.full((4,), 0.5), persistent=False)
        self.offset = torch.ones(4)

    def forward(self, x: Any, others: list[Any], *, twice: bool = False) -> dict[str, Any]:
        self.calls.add_(1)
        y = self.layer(x) * self.calls * self.scale + self.offset
        return {"y": y * 2 if twice else y, "rest": (y.sum(0), x.reshape(-1) * others[0][0], None)}


def exported(module: Any, *arguments: Any, shapes: Any = None, **keywords: Any) -> Any:
    return torch.export.export(module, arguments, keywords, dynamic_shapes=shapes)


def counter_program() -> tuple[Any, Any]:
    module, rows = Counter(), torch.export.Dim("rows", max=64)
    shapes = {"x": {0: rows}, "others": [None], "twice": None}
    return module, exported(module, torch.randn(3, 8), [torch.randn(8)], shapes=shapes, twice=True)


def test_programs_run_at_all_their_sizes_and_write_their_buffers(tmp_path: Path) -> None:
    module, program = counter_program()
    torch.export.save(program, tmp_path / "counter.pt2")
    for given in (program, str(tmp_path / "counter.pt2")):
        module.calls.zero_()
        loaded = dml.torch.load(given)
        for rows in (3, 5, 17, 1):
            x, other = torch.randn(rows, 8), torch.randn(8)
            result = loaded(x, [other], twice=True)
            torch.testing.assert_close(result, module(x, [other], twice=True))
        assert loaded.state["calls"].tolist() == [4.0] * 4


def test_written_parameters_are_read_again() -> None:
    net, x = nn.Linear(3, 2), torch.randn(4, 3)
    loaded = dml.torch.load(exported(net, x))
    torch.testing.assert_close(loaded(x), net(x))
    with torch.no_grad():
        for each in loaded.state.values():
            each.mul_(2)
    weight, bias = loaded.state["weight"], loaded.state["bias"]
    torch.testing.assert_close(loaded(x), nn.functional.linear(x, weight, bias).detach())


def test_inputs_that_a_program_writes_are_written() -> None:
    class Writer(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def forward(self, x: Any) -> Any:
            x.mul_(2)
            return x + 1

    loaded, x = dml.torch.load(exported(Writer(), torch.ones(3))), torch.ones(3)
    assert loaded(x).tolist() == [3, 3, 3]
    assert x.tolist() == [2, 2, 2]


def test_wrong_inputs_are_named() -> None:
    _, program = counter_program()
    loaded = dml.torch.load(program)
    x, other = torch.randn(3, 8), torch.randn(8)
    for arguments, keywords, problem in (
        ((x,), {"twice": True}, r"arguments of structure"),
        ((x, [other]), {}, r"keywords \[\]; must be \['twice'\]"),
        ((x, [other]), {"twice": False}, r"input 'twice' is False; was exported for True"),
        (
            (x.double(), [other]),
            {"twice": True},
            r"input 'x' is torch.float64 on cpu; torch.float32 on cpu is",
        ),
        ((x[0], [other]), {"twice": True}, r"input 'x' has 1 dimensions; 2 are needed"),
        ((x[:, :7], [other]), {"twice": True}, r"input 'x': size 7 of dimension 1; was exported for 8"),
        (
            (torch.randn(65, 8), [other]),
            {"twice": True},
            r"size 65 of dimension 0; must be within \[\d, 64\]",
        ),
        ((x, [3.0]), {"twice": True}, r"input 'others_0' is float; a tensor is needed"),
    ):
        with pytest.raises(dml.InvalidArgument, match=problem) as caught:
            loaded(*arguments, **keywords)
        assert "\n" not in str(caught.value)


def test_sizes_that_must_agree_are_checked() -> None:
    class Sum(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def forward(self, x: Any, y: Any) -> Any:
            return x + y

    rows = torch.export.Dim("rows")
    loaded = dml.torch.load(
        exported(Sum(), torch.ones(3, 2), torch.ones(3, 2), shapes=({0: rows}, {0: rows}))
    )
    torch.testing.assert_close(loaded(torch.ones(6, 2), torch.ones(6, 2)), torch.full((6, 2), 2.0))
    with pytest.raises(
        dml.InvalidArgument, match="input 'y': size 5 of dimension 0; must be 6, as of other inputs"
    ):
        loaded(torch.ones(6, 2), torch.ones(5, 2))


def test_sizes_that_follow_from_others_are_checked() -> None:
    class Rest(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def forward(self, x: Any, y: Any) -> Any:
            return x[1:] + y

    rows = torch.export.Dim("rows", max=10)
    shapes = {0: rows + 1}, {0: rows}
    rest = dml.torch.load(exported(Rest(), torch.ones(5, 2), torch.ones(4, 2), shapes=shapes))
    torch.testing.assert_close(rest(torch.ones(8, 2), torch.ones(7, 2)), torch.full((7, 2), 2.0))
    with pytest.raises(dml.InvalidArgument, match="size 8 of dimension 0; must be 9, which follows"):
        rest(torch.ones(8, 2), torch.ones(8, 2))

    class Fours(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def forward(self, x: Any) -> Any:
            return x.reshape(-1, 4).sum(1)

    count = torch.export.Dim("count", max=5)
    fours = dml.torch.load(exported(Fours(), torch.ones(8), shapes=({0: 4 * count},)))
    torch.testing.assert_close(fours(torch.ones(12)), torch.full((3,), 4.0))
    with pytest.raises(dml.InvalidArgument, match=r"size 10 of dimension 0; must be 4.* with a whole"):
        fours(torch.ones(10))


def test_numbers_of_other_types_are_refused() -> None:
    class Times(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def forward(self, x: Any, number: int) -> Any:
            return x * number

    x = torch.ones(3)
    fixed = dml.torch.load(exported(Times(), x, 4))
    open_ = dml.torch.load(exported(Times(), x, 4, shapes=(None, torch.export.Dim.DYNAMIC)))
    for number in (7, 0, 1):
        torch.testing.assert_close(open_(x, number), x * number)
    with pytest.raises(dml.InvalidArgument, match=r"input 'number' is -3; must be within \[0, int_oo\]"):
        open_(x, -3)
    for wrong in ("7", 7.5, torch.ones(2)):
        with pytest.raises(dml.InvalidArgument, match=r"input 'number' is .*; a whole number is needed"):
            open_(x, wrong)
        with pytest.raises(dml.InvalidArgument, match=r"input 'number' is .*; was exported for 4"):
            fixed(x, wrong)


def test_state_cannot_be_exchanged() -> None:
    loaded = dml.torch.load(exported(nn.Linear(3, 2), torch.ones(4, 3)))
    with pytest.raises(TypeError, match="item assignment"):
        loaded.state["bias"] = torch.ones(5)  # type: ignore[index,unused-ignore]


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(dml.InvalidArgument, match=r"Linear; a program of torch.export.export"):
        dml.torch.load(nn.Linear(2, 2))
    with pytest.raises(dml.NoSuchFile, match="there is no file"):
        dml.torch.load(tmp_path / "none.pt2")
    (tmp_path / "text.pt2").write_text("no program")
    with pytest.raises(dml.InvalidArgument, match=r"is no program of torch.export"):
        dml.torch.load(tmp_path / "text.pt2")
    with pytest.raises(dml.InvalidArgument, match="'freezing' is 1"):
        dml.torch.load(tmp_path / "none.pt2", freezing=1)


def test_branches_on_values_are_refused_by_name() -> None:
    class Branch(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def forward(self, x: Any) -> Any:
            return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))

    with pytest.raises(dml.InvalidArgument, match="the program calls cond, which cannot be compiled"):
        dml.torch.load(exported(Branch(), torch.ones(3)))
