"""LLVM assembly, written as text while instructions are added to blocks.

The names are those of `llvmlite.ir`, whose objects are turned into text at the end. That takes 6 times as
long: 0.53 s of processor time instead of 0.09 for the 27 kernels of ResNet-50.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import count

_UNLIKELY = "i32 1, i32 99"
"""Weights of a branch that is rarely taken, and of the other one."""
_LIKELY = "i32 99, i32 1"
_NAMES = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
"""LLVM's names of comparisons."""


class Type:
    """A type: its text, the bits of an integer, and the elements of a vector or an array."""

    __slots__ = ("count", "element", "text", "width")

    def __init__(self, text: str, width: int = 0, element: Type | None = None, count: int = 1) -> None:
        self.text, self.width, self.count = text, width, count
        self.element: Type = element or self

    def __call__(self, number: int) -> Value:
        """Return a constant of this type of integers."""
        return _integer(self, number)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class VectorType(Type):
    """A vector of numbers or pointers."""

    __slots__ = ()

    def __init__(self, element: Type, count: int) -> None:
        super().__init__(f"<{count} x {element.text}>", 0, element, count)


def ArrayType(element: Type, count: int) -> Type:  # noqa: N802
    """Return the type of an array."""
    return Type(f"[{count} x {element.text}]", 0, element, count)


@cache
def IntType(width: int) -> Type:  # noqa: N802
    """Return the type of integers of some bits."""
    return Type(f"i{width}", width)


HALF, FLOAT, DOUBLE = Type("half"), Type("float"), Type("double")
POINTER, VOID = Type("ptr"), Type("void")
I1, I8, I32, I64 = IntType(1), IntType(8), IntType(32), IntType(64)


class Value:
    """A constant, an argument or a result: its type and its text."""

    __slots__ = ("text", "type")

    def __init__(self, type: Type, text: str) -> None:
        self.type, self.text = type, text

    def __str__(self) -> str:
        return f"{self.type.text} {self.text}"


@cache
def _integer(type: Type, number: int) -> Value:
    return Value(type, str(int(number)))


def vector_of(element: Type, numbers: Iterable[int]) -> Value:
    """Return a constant vector of integers."""
    each = [f"{element.text} {int(number)}" for number in numbers]
    return Value(VectorType(element, len(each)), f"<{', '.join(each)}>")


def array_of(element: Type, numbers: Sequence[int]) -> Value:
    """Return a constant array of integers."""
    each = ", ".join([f"{element.text} {int(number)}" for number in numbers])
    return Value(ArrayType(element, len(numbers)), f"[{each}]")


def zero(type: Type) -> Value:
    """Return the constant of a type whose bits are 0."""
    return Value(type, "zeroinitializer")


def undefined(type: Type) -> Value:
    """Return a constant of a type with any content."""
    return Value(type, "undef")


class Slot(Value):
    """The address of a local variable, with the type of its content."""

    __slots__ = ("content",)

    def __init__(self, text: str, content: Type) -> None:
        super().__init__(POINTER, text)
        self.content = content


class Phi(Value):
    """A value that depends on the block before."""

    __slots__ = ("incoming",)

    def __init__(self, type: Type, text: str) -> None:
        super().__init__(type, text)
        self.incoming: list[str] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        """Set the value for a block before."""
        self.incoming.append(f"[{value.text}, %{block.name}]")

    @property
    def line(self) -> str:
        """The instruction."""
        return f"{self.text} = phi {self.type.text} {', '.join(self.incoming)}"


class Argument(Value):
    """An argument of a function."""

    __slots__ = ("attributes",)

    def __init__(self, type: Type, text: str) -> None:
        super().__init__(type, text)
        self.attributes: list[str] = []

    def add_attribute(self, attribute: str) -> None:
        """Add an attribute of LLVM."""
        self.attributes.append(attribute)


class Block:
    """Instructions that are run one after another. The last one leaves the block."""

    __slots__ = ("function", "last", "lines", "name")

    def __init__(self, function: Function, name: str) -> None:
        self.function, self.name = function, name
        self.lines: list[str | Phi] = []
        self.last: str | None = None

    def text(self) -> str:
        """Return the assembly of the whole."""
        lines = [each if isinstance(each, str) else each.line for each in self.lines]
        return "\n".join([f"{self.name}:", *lines, self.last or "unreachable"])


class Function(Value):
    """A function of a module. Without blocks it is declared.

    Args:
        module: the module.
        result: the type of its result.
        arguments: those of its arguments.
        name: its name.
    """

    __slots__ = (
        "args",
        "attributes",
        "blocks",
        "convention",
        "linkage",
        "module",
        "name",
        "numbers",
        "result",
    )

    def __init__(self, module: Module, result: Type, arguments: Sequence[Type], name: str) -> None:
        super().__init__(POINTER, f'@"{name}"')
        self.module, self.result, self.name = module, result, name
        self.numbers = count()
        """Numbers for the names of values and blocks."""
        self.args = [Argument(type, f"%a{number}") for number, type in enumerate(arguments)]
        self.attributes: list[str] = []
        self.linkage = self.convention = ""
        self.blocks: list[Block] = []
        module.globals[name] = self

    def append_basic_block(self, name: str = "") -> Block:
        """Return a new block, whose name begins with a text."""
        self.blocks.append(Block(self, f"{name or 'block'}{next(self.numbers)}"))
        return self.blocks[-1]

    def definition(self) -> str:
        """Return the assembly of the whole."""
        if not self.blocks:
            types = ", ".join([each.type.text for each in self.args])
            return f"declare {self.result.text} {self.text}({types})"
        arguments = [" ".join([each.type.text, *each.attributes, each.text]) for each in self.args]
        call = f"{self.text}({', '.join(arguments)})"
        words = ["define", self.linkage, self.convention, self.result.text, call, *self.attributes]
        head = " ".join(filter(None, words))
        return "\n".join([f"{head} {{", *[each.text() for each in self.blocks], "}"])


class GlobalVariable(Value):
    """A variable of a module.

    Args:
        module: the module.
        content: the initial content.
        name: its name.
        kind: LLVM's words for linkage and kind.
        alignment: of its address.
    """

    __slots__ = ("_definition",)

    def __init__(self, module: Module, content: Value, name: str, kind: str, alignment: int) -> None:
        super().__init__(POINTER, f'@"{name}"')
        self._definition = f"{self.text} = {kind} {content}, align {alignment}"
        module.globals[name] = self

    def definition(self) -> str:
        """Return the assembly of its definition."""
        return self._definition


class Module:
    """Functions and variables. Its text is its assembly.

    Args:
        triple: the system and processor that it is for, in LLVM's notation.
    """

    def __init__(self, triple: str = "") -> None:
        self.triple = triple
        self.globals: dict[str, Function | GlobalVariable] = {}
        """All functions and variables by name."""
        self.shared_functions: dict[str, str] = {}
        """The assembly of functions that it shares with other modules, by their names."""

    def function(self, name: str) -> Function | None:
        """Return a function by name, if there is one."""
        found = self.globals.get(name)
        return found if isinstance(found, Function) else None

    def __str__(self) -> str:
        head = [f'target triple = "{self.triple}"'] if self.triple else []
        return "\n".join([*head, *[each.definition() for each in self.globals.values()], ""])

    def clear(self) -> None:
        """Drop the blocks of all functions: a megabyte, which reference cycles would keep for long."""
        for each in self.globals.values():
            if isinstance(each, Function):
                for block in each.blocks:
                    block.lines.clear()
                each.blocks.clear()


_Binary = Callable[["IRBuilder", Value, Value], Value]
_Unary = Callable[["IRBuilder", Value], Value]
_Cast = Callable[["IRBuilder", Value, Type], Value]
_Comparison = Callable[["IRBuilder", str, Value, Value], Value]


def _binary(name: str) -> _Binary:
    def emit(builder: IRBuilder, a: Value, b: Value) -> Value:
        return builder.result(a.type, f"{name} {a.type.text} {a.text}, {b.text}")

    return emit


def _cast(name: str) -> _Cast:
    """Return the method of a conversion, which leaves a value that has the type as it is."""

    def emit(builder: IRBuilder, value: Value, type: Type) -> Value:
        if value.type.text == type.text:
            return value
        return builder.result(type, f"{name} {value.type.text} {value.text} to {type.text}")

    return emit


def _comparison(instruction: str, equal: str, ordered: str) -> _Comparison:
    """Return the method of a comparison: of numbers in an order of LLVM, or by LLVM's own name."""

    def emit(builder: IRBuilder, sign: str, a: Value, b: Value) -> Value:
        name = _NAMES.get(sign)
        prefix = "" if name is None else equal if name in ("eq", "ne") else ordered
        type = VectorType(I1, a.type.count) if isinstance(a.type, VectorType) else I1
        return builder.result(type, f"{instruction} {prefix}{name or sign} {a.type.text} {a.text}, {b.text}")

    return emit


class IRBuilder:
    """Adds instructions to a block."""

    def __init__(self, block: Block) -> None:
        self.function, self.module = block.function, block.function.module
        self._numbers = self.function.numbers
        self.position_at_end(block)

    def position_at_end(self, block: Block) -> None:
        """Add to a block from now on, before the instruction that leaves it."""
        self.block, self._add = block, block.lines.append

    @contextmanager
    def goto_block(self, block: Block) -> Iterator[None]:
        """Add to another block for a time."""
        before = self.block
        self.position_at_end(block)
        try:
            yield
        finally:
            self.position_at_end(before)

    def append_basic_block(self, name: str = "") -> Block:
        """Return a new block of the function."""
        return self.function.append_basic_block(name)

    def result(self, type: Type, code: str) -> Value:
        """Add an instruction, and return its result."""
        name = f"%v{next(self._numbers)}"
        self._add(f"{name} = {code}")
        return Value(type, name)

    add, sub, mul = _binary("add"), _binary("sub"), _binary("mul")
    add_without_overflow = _binary("add nsw")
    udiv, sdiv, urem = _binary("udiv"), _binary("sdiv"), _binary("urem")
    and_, or_, xor = _binary("and"), _binary("or"), _binary("xor")
    shl, lshr, ashr = _binary("shl"), _binary("lshr"), _binary("ashr")
    fadd, fsub, fmul, fdiv = _binary("fadd"), _binary("fsub"), _binary("fmul"), _binary("fdiv")
    trunc, zext, sext = _cast("trunc"), _cast("zext"), _cast("sext")
    fptrunc, fpext, sitofp = _cast("fptrunc"), _cast("fpext"), _cast("sitofp")
    uitofp, fptosi, fptoui = _cast("uitofp"), _cast("fptosi"), _cast("fptoui")
    bitcast, ptrtoint, inttoptr = _cast("bitcast"), _cast("ptrtoint"), _cast("inttoptr")
    icmp_signed, icmp_unsigned = _comparison("icmp", "", "s"), _comparison("icmp", "", "u")
    fcmp_ordered, fcmp_unordered = _comparison("fcmp", "o", "o"), _comparison("fcmp", "u", "u")

    def neg(self, value: Value) -> Value:
        """Return an integer with the other sign."""
        return self.sub(zero(value.type), value)

    def fneg(self, value: Value) -> Value:
        """Return a float with the other sign."""
        return self.result(value.type, f"fneg {value}")

    def not_(self, value: Value) -> Value:
        """Return the other bits."""
        ones = "-1" if value.type.element is value.type else f"splat ({value.type.element.text} -1)"
        return self.xor(value, Value(value.type, ones))

    def select(self, condition: Value, value: Value, other: Value) -> Value:
        """Return one of two values."""
        return self.result(value.type, f"select {condition}, {value}, {other}")

    def insert_element(self, vector: Value, value: Value, index: Value) -> Value:
        """Return a vector with another element."""
        return self.result(vector.type, f"insertelement {vector}, {value}, {index}")

    def extract_element(self, vector: Value, index: Value) -> Value:
        """Return an element of a vector."""
        return self.result(vector.type.element, f"extractelement {vector}, {index}")

    def shuffle_vector(self, first: Value, second: Value, lanes: Value) -> Value:
        """Return the elements of two vectors that constant lanes name."""
        type = VectorType(first.type.element, lanes.type.count)
        return self.result(type, f"shufflevector {first}, {second}, {lanes}")

    def gep(self, pointer: Value, indices: Sequence[Value], source_etype: Type) -> Value:
        """Return addresses: vectors of indices give vectors of addresses."""
        vector = next((each.type for each in indices if isinstance(each.type, VectorType)), None)
        type = pointer.type if vector is None else VectorType(POINTER, vector.count)
        each = ", ".join([f"{index.type.text} {index.text}" for index in indices])
        return self.result(type, f"getelementptr {source_etype.text}, ptr {pointer.text}, {each}")

    def alloca(self, type: Type, align: int) -> Slot:
        """Return a new variable on the stack."""
        return Slot(self.result(POINTER, f"alloca {type.text}, align {align}").text, type)

    def load(self, pointer: Value, typ: Type | None = None, align: int | None = None) -> Value:
        """Return the content of an address. A local variable has the type itself."""
        if typ is None:
            assert isinstance(pointer, Slot)
            typ = pointer.content
        alignment = "" if align is None else f", align {align}"
        return self.result(typ, f"load {typ.text}, ptr {pointer.text}{alignment}")

    def store(
        self, value: Value, pointer: Value, align: int | None = None, is_streamed: bool = False
    ) -> None:
        """Write to an address, perhaps past the caches."""
        alignment = "" if align is None else f", align {align}"
        streamed = ", !nontemporal !{i32 1}" if is_streamed else ""
        self._add(f"store {value}, ptr {pointer.text}{alignment}{streamed}")

    def phi(self, type: Type) -> Phi:
        """Return a value that depends on the block before."""
        result = Phi(type, f"%v{next(self._numbers)}")
        self._add(result)
        return result

    def call(
        self,
        function: Function,
        operands: Sequence[Value],
        alignment: tuple[int, int] | None = None,
        flags: Sequence[str] = (),
    ) -> Value:
        """Call a function.

        Args:
            function: the function.
            operands: its arguments.
            alignment: the number of an address among them, and its alignment.
            flags: properties of arithmetic on floats.
        """
        each = [str(operand) for operand in operands]
        if alignment is not None:
            pointer = operands[alignment[0]]
            each[alignment[0]] = f"{pointer.type.text} align {alignment[1]} {pointer.text}"
        called = f"{function.text}({', '.join(each)})"
        code = " ".join(filter(None, ["call", *flags, function.convention, function.result.text, called]))
        return self._called(function.result, code)

    def asm(self, result: Type, constraints: str, operands: Sequence[Value], has_effects: bool) -> Value:
        """Return what assembly without instructions returns, of which LLVM knows no more than constraints."""
        effects = "sideeffect " if has_effects else ""
        each = ", ".join([str(operand) for operand in operands])
        return self._called(result, f'call {result.text} asm {effects}"", "{constraints}"({each})')

    def _called(self, result: Type, code: str) -> Value:
        if result is not VOID:
            return self.result(result, code)
        self._add(code)
        return Value(VOID, "")

    def branch(self, block: Block) -> None:
        """Go to a block."""
        self.block.last = f"br label %{block.name}"

    def cbranch(self, condition: Value, block: Block, other: Block, likely: bool | None = None) -> None:
        """Go to one of two blocks.

        Args:
            condition: a truth value.
            block: the block if it is true.
            other: the block if it is false.
            likely: whether it is mostly true; None: that is not known.
        """
        weights = ""
        if likely is not None:
            weights = f', !prof !{{!"branch_weights", {_LIKELY if likely else _UNLIKELY}}}'
        self.block.last = f"br {condition}, label %{block.name}, label %{other.name}{weights}"

    def ret(self, value: Value) -> None:
        """Leave the function with a value."""
        self.block.last = f"ret {value}"

    def ret_void(self) -> None:
        """Leave a function without a result."""
        self.block.last = "ret void"

    @contextmanager
    def if_then(self, condition: Value, likely: bool | None = None) -> Iterator[None]:
        """Add what runs only if a condition is true. Behind it both ways meet."""
        then, end = self.append_basic_block("then"), self.append_basic_block("end")
        self.cbranch(condition, then, end, likely)
        with self._until(then, end):
            yield
        self.position_at_end(end)

    @contextmanager
    def if_else(
        self, condition: Value, likely: bool | None = None
    ) -> Iterator[tuple[AbstractContextManager[None], AbstractContextManager[None]]]:
        """Yield contexts that add what runs if a condition is true, and if it is false."""
        then, other, end = map(self.append_basic_block, ("then", "else", "end"))
        self.cbranch(condition, then, other, likely)
        yield self._until(then, end), self._until(other, end)
        self.position_at_end(end)

    @contextmanager
    def _until(self, block: Block, end: Block) -> Iterator[None]:
        """Add to a block, which goes to another one."""
        self.position_at_end(block)
        yield
        if self.block.last is None:
            self.branch(end)
