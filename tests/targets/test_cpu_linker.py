"""Objects are linked without LLVM, and what the linker does not know is left to LLVM or refused."""

from __future__ import annotations

import ctypes
import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import pytest

from opendml.errors import Unsupported
from opendml.targets.cpu import host_facts, linker, machine_code
from opendml.targets.cpu.bundles import as_one_module, bundled, objects_of, parts_of, with_functions
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.machine_code import compile_object
from opendml.targets.cpu.object_code import linked_by_llvm, target_machine
from opendml.targets.object_cache import read_object, write_object

pytestmark = pytest.mark.skipif(not linker.is_possible(), reason="LLVM links objects of this system")

CALLS = """
@number = dso_local constant i64 40
@table = private constant [3 x double] [double 0.5, double 2.0, double 0.25]
declare i64 @labs(i64)
declare i64 @atol(ptr)
define i64 @sum(i64 %x) {
  %magnitude = call i64 @labs(i64 %x)
  %again = call i64 @labs(i64 %magnitude)
  %number = load i64, ptr @number
  %sum = add i64 %again, %number
  ret i64 %sum
}
define double @scaled(double %x, i64 %place) {
  %address = getelementptr double, ptr @table, i64 %place
  %factor = load volatile double, ptr %address
  %product = fmul double %x, %factor
  %result = fadd double %product, 3.7
  ret double %result
}
"""
Link = Callable[[bytes, tuple[str, ...]], dict[str, int] | None]


def compiled(assembly: str) -> bytes:
    return compile_object(f'target triple = "{machine().triple}"\n{assembly}')


def by_llvm(code: bytes, symbols: tuple[str, ...]) -> dict[str, int]:
    return linked_by_llvm(objects_of(code), symbols, machine_code.host_target())


@pytest.mark.parametrize("link", [linker.linked, by_llvm])
def test_linked_code_calls_the_c_library_and_reads_its_constants(link: Link) -> None:
    addresses = link(compiled(CALLS), ("sum", "scaled", "number"))
    assert addresses is not None
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(addresses["sum"])(-2) == 42
    assert ctypes.c_int64.from_address(addresses["number"]).value == 40
    scaled = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(addresses["scaled"])
    assert [scaled(2.0, place) for place in range(3)] == [2.0 * each + 3.7 for each in (0.5, 2.0, 0.25)]


def test_code_is_not_written() -> None:
    addresses = linker.linked(compiled(CALLS), ("sum",))
    assert addresses is not None
    lines = Path("/proc/self/maps").read_text().splitlines()
    spans = [(line.split()[0].split("-"), line.split()[1]) for line in lines]
    (permissions,) = [
        found for (begin, end), found in spans if int(begin, 16) <= addresses["sum"] < int(end, 16)
    ]
    assert permissions == "r-xp"


@pytest.mark.parametrize(
    "assembly",
    [
        "@counter = global i64 7\ndefine i64 @kernel() {\n  %x = load i64, ptr @counter\n  ret i64 %x\n}",
        "@zeros = global [9 x i64] zeroinitializer\ndefine ptr @kernel() {\n  ret ptr @zeros\n}",
        "@pointer = constant ptr @kernel\ndefine ptr @kernel() {\n  ret ptr @pointer\n}",
        "@far = external global i64\ndefine ptr @kernel() {\n  ret ptr @far\n}",
    ],
    ids=["data", "zeros", "pointer", "outside"],
)
def test_other_forms_are_left_to_llvm(assembly: str) -> None:
    assert linker.linked(compiled(assembly), ("kernel",)) is None


def test_objects_of_other_processors_are_left_to_llvm() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for triple in ("aarch64-unknown-linux-gnu", "x86_64-apple-macosx"):
        target = llvm.Target.from_triple(triple).create_target_machine(reloc="pic")
        module = llvm.parse_assembly(f'target triple = "{triple}"\ndefine void @kernel() {{\n  ret void\n}}')
        assert linker.linked(bytes(target.emit_object(module)), ("kernel",)) is None
    assert linker.linked(b"", ("kernel",)) is None


@pytest.mark.parametrize(
    ("assembly", "symbols", "message"),
    [
        (CALLS, ("product",), "it has no product"),
        (
            "declare void @no_such()\ndefine void @f() {\n  call void @no_such()\n  ret void\n}",
            ("f",),
            "no_such",
        ),
    ],
)
def test_what_is_missing_is_named(assembly: str, symbols: tuple[str, ...], message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        machine_code.load_object(compiled(assembly), symbols)


def test_damaged_objects_are_refused_or_linked_within_themselves() -> None:
    whole, generator = compiled(CALLS), random.Random(0)
    for size in range(7, len(whole), 7):
        with pytest.raises(Unsupported):
            linker.linked(whole[:size], ("sum",))
    for _ in range(3000):
        changed = bytearray(whole)
        for _ in range(generator.choice([1, 1, 2, 8])):
            changed[generator.randrange(16, len(changed))] = generator.choice([0, 1, 0x7F, 0xFF])
        with suppress(Unsupported):
            linker.image_of(bytes(changed))


def test_the_cache_keeps_what_llvm_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    found = host_facts._told_by_llvm()
    target_machine(found.triple, found.name, found.features)
    assert llvmlite.__version__ in found.versions
    key = host_facts._key()
    assert key is not None
    write_object(key, b"", "host")
    assert host_facts.host_facts.__wrapped__() == found
    assert json.loads(read_object(key, "host") or b"")["name"] == found.name
    monkeypatch.setattr(host_facts, "_told_by_llvm", None)
    assert host_facts.host_facts.__wrapped__() == found
    monkeypatch.setattr(host_facts, "_LLVM", host_facts._LLVM[:1])
    assert host_facts._key() != key
    monkeypatch.setattr(host_facts, "_LLVM", ("no such file",))
    assert host_facts._key() is None


CALLER = """
declare void @"function.1"(ptr)
declare i64 @"labs"(i64)
define i64 @"kernel"(i64 %x) {
  %place = alloca i64
  %before = call i64 @"helper"(i64 %x)
  store i64 %before, ptr %place
  call void @"function.1"(ptr %place)
  %number = load i64, ptr %place
  %result = call i64 @"labs"(i64 %number)
  ret i64 %result
}
define internal i64 @"helper"(i64 %x) noinline {
  %result = add i64 %x, 1
  ret i64 %result
}
"""
FUNCTION = """
declare i64 @"labs"(i64)
define void @"function.1"(ptr %place) {
  %number = load i64, ptr %place
  %positive = call i64 @"labs"(i64 %number)
  %more = call i64 @"function.1.inner"(i64 %positive)
  %less = sub i64 0, %more
  store i64 %less, ptr %place
  ret void
}
define internal i64 @"function.1.inner"(i64 %x) noinline {
  %result = call i64 @"helper"(i64 %x)
  ret i64 %result
}
define internal i64 @"helper"(i64 %x) noinline {
  %result = add i64 %x, 1
  ret i64 %result
}
"""


@pytest.mark.parametrize("link", [linker.linked, by_llvm])
def test_a_kernel_is_linked_with_the_functions_that_it_shares(link: Link) -> None:
    triple = f'target triple = "{machine().triple}"\n'
    assembly = with_functions(triple + CALLER, {"function.1": triple + FUNCTION})
    kernel, functions = parts_of(assembly)
    assert [*functions] == ["function.1"]
    in_parts = bundled([compile_object(each) for each in (kernel, *functions.values())])
    assert len(objects_of(in_parts)) == 2
    whole = compile_object(as_one_module(assembly))
    assert objects_of(whole) == [whole] == [bundled([whole])]
    for code in (in_parts, whole, compile_object(assembly)):
        addresses = link(code, ("kernel",))
        assert addresses is not None
        assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(addresses["kernel"])(-42) == 42


def test_a_damaged_bundle_is_refused() -> None:
    triple = f'target triple = "{machine().triple}"\n'
    code = bundled([compile_object(triple + each) for each in (CALLER, FUNCTION)])
    for damaged in (code[:12], code[:20], code[:-1], code + b"\0", code[:8] + b"\xff" * 8 + code[16:]):
        with pytest.raises(Unsupported, match="bundle"):
            machine_code.load_object(damaged, ("kernel",))
