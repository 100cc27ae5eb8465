"""A thin layer over the builder of assembly: integers, counted loops, vectors in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.masks import (
    PAGE,
    copy_lanes,
    gathers_by_instruction,
    has_masks,
    store_first,
    stores_by_masks,
)
from opendml.targets.cpu.values import (
    Literal,
    intrinsic,
    is_vector,
    llvm_type,
    number,
    overloaded,
    splat,
    type_suffix,
    vector_constant,
    vector_type,
)

I1, I8, I32, I64, POINTER = ir.I1, ir.I8, ir.I32, ir.I64, ir.POINTER

Body = Callable[[ir.Value, ir.Value | None], None]


def internal_function(module: ir.Module, name: str, arguments: Sequence[ir.Type]) -> ir.Function:
    """Declare a function that only this module calls, and that returns nothing."""
    function = ir.Function(module, ir.VOID, arguments, name)
    function.linkage = "internal"
    function.attributes += ["nounwind", "noinline"]
    return function


class Code:
    """Emits into one function. Indices and offsets are 64-bit, offsets in bytes. `lanes` is the width of
    vectors."""

    def __init__(self, function: ir.Function, lanes: int) -> None:
        self.function, self.lanes = function, lanes
        self.reads_unaligned = False
        """True if elements that are loaded may lie at any address."""
        self._copies: dict[ir.Type, ir.Value] = {}
        self._counts: dict[int, tuple[ir.Value, ir.Value]] = {}
        """Masks of the first lanes by their identities, each with the number of these lanes."""
        self._zeros: ir.Value | None = None
        self.entry = function.append_basic_block("entry")
        self.builder = ir.IRBuilder(self.entry)
        body = function.append_basic_block("body")
        self.builder.branch(body)
        self.builder.position_at_end(body)

    def local(self, type: ir.Type, initial: ir.Value | None = None) -> ir.Value:
        """Return a variable that lives as long as the function."""
        slot = self.once(lambda: self.builder.alloca(type, align=64))
        if initial is not None:
            self.builder.store(initial, slot)
        return slot

    def once(self, emit: Callable[[], ir.Value]) -> ir.Value:
        """Return what `emit` emits, before everything else in the function."""
        with self.builder.goto_block(self.entry):
            return emit()

    def array(self, type: ScalarType, count: int) -> ir.Value:
        """Return an array on the stack that lives as long as the function. A truth value takes a byte."""
        return self.local(ir.ArrayType(ir.IntType(8 * type.bytes), count))

    def get(self, slot: ir.Value) -> ir.Value:
        """Return the value of a local."""
        return self.builder.load(slot)

    def set(self, slot: ir.Value, value: ir.Value) -> None:
        """Assign a local."""
        self.builder.store(value, slot)

    @contextmanager
    def loop(self, start: ir.Value, stop: ir.Value, step: int = 1) -> Iterator[ir.Value]:
        """Loop as for (index = start; index + step <= stop; index += step). Yields the index."""
        counter = self.local(I64, start)
        head, body, done = (self.builder.append_basic_block(name) for name in ("head", "loop", "done"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        index = self.get(counter)
        following = self.builder.add_without_overflow(index, I64(step))
        self.builder.cbranch(self.builder.icmp_signed("<=", following, stop), body, done)
        self.builder.position_at_end(body)
        yield index
        self.set(counter, following)
        self.builder.branch(head)
        self.builder.position_at_end(done)

    def vector_loop(self, start: ir.Value, stop: ir.Value, body: Body) -> None:
        """Call `body(index, mask)` for every vector of lanes between start and stop. Full vectors have no
        mask."""
        with self.loop(start, stop, self.lanes) as index:
            body(index, None)
        count = self.builder.sub(stop, start)
        rest = self.builder.and_(count, I64(self.lanes - 1))
        with self.builder.if_then(self.builder.icmp_signed("!=", rest, I64(0))):
            body(self.builder.sub(stop, rest), self.first_lanes(rest))

    def hidden(self, index: ir.Value) -> ir.Value:
        """Return an index without LLVM's knowledge of how it changes."""
        return self.builder.asm(index.type, "=r,0", [index], has_effects=False)

    def elements_to_boundary(self, pointer: ir.Value, type: ScalarType, width: int = 1) -> ir.Value:
        """Return the number of elements, or bundles of `width` elements, up to the next address that is a
        multiple of the size of a vector."""
        address = self.builder.ptrtoint(pointer, I64)
        distance = self.builder.and_(self.builder.neg(address), I64(type.bytes * self.lanes - 1))
        return self.builder.udiv(distance, I64(width * type.bytes))

    def first_lanes(self, count: ir.Value) -> ir.Value:
        """Return the mask of the first `count` lanes.

        It is compared with the numbers of lanes, in integers of the bits of a lane, 8 to 32. So it may be
        little more than the number of lanes.
        """
        type = ir.IntType(min(32, 8 * machine().vector_bytes // self.lanes))
        bound = self.broadcast(self.builder.trunc(count, type))
        mask = self.builder.icmp_unsigned("<", vector_constant(type, range(self.lanes)), bound)
        self._counts[id(mask)] = mask, count
        return mask

    def count(self, mask: ir.Value) -> ir.Value:
        """Return the number of lanes of a mask that are set."""
        bits = self.builder.bitcast(mask, ir.IntType(self.lanes))
        return self.builder.zext(intrinsic(self.builder, f"llvm.ctpop.i{self.lanes}", bits.type, [bits]), I64)

    def compressed(self, value: ir.Value, mask: ir.Value, others: ir.Value, type: ScalarType) -> ir.Value:
        """Return the lanes of a mask, integers of 32 or 64 bits, in the first lanes. The lanes behind are
        those of `others`. Of 64 bits the halves are moved, because LLVM would store vectors that are wider
        than a register as if they were aligned."""
        if type.bits == 32:
            name = f"llvm.experimental.vector.compress.{type_suffix(type, self.lanes)}"
            return intrinsic(self.builder, name, value.type, [value, mask, others])
        low, high = (
            self.compressed(self._half(value, shift), mask, self._half(others, shift), ScalarType.UINT32)
            for shift in (0, 32)
        )
        shifted = self.builder.shl(self.builder.zext(high, value.type), number(type, self.lanes, 32))
        return self.builder.or_(shifted, self.builder.zext(low, value.type))

    def _half(self, value: ir.Value, shift: int) -> ir.Value:
        """Return 32 bits of each lane of 64, from bit `shift` on."""
        shifted = self.builder.lshr(value, number(ScalarType.UINT64, self.lanes, shift))
        return self.builder.trunc(shifted, vector_type(I32, self.lanes))

    def broadcast(self, value: ir.Value) -> ir.Value:
        """Return a scalar in every lane."""
        return splat(self.builder, value, self.lanes)

    def offset(self, pointer: ir.Value, byte_offset: ir.Value) -> ir.Value:
        """Return the address `byte_offset` bytes further on."""
        return self.builder.gep(pointer, [byte_offset], source_etype=I8)

    def element_at(self, pointer: ir.Value, index: ir.Value, step: ir.Value) -> ir.Value:
        """Return the address `index` steps of `step` bytes further on."""
        return self.offset(pointer, self.builder.mul(index, step))

    def element(self, array: ir.Value, index: int, type: ir.Type = I64) -> ir.Value:
        """Return an entry of an array of 64-bit entries."""
        address = self.builder.gep(array, [I64(index)], source_etype=I64)
        return self.builder.load(address, typ=type)

    def split(self, index: ir.Value, counts: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the indices of nested loops with `counts`, outermost first, at a running index."""
        result: list[ir.Value] = []
        for count in reversed(counts[1:]):
            result.append(self.builder.urem(index, count))
            index = self.builder.udiv(index, count)
        return [index, *reversed(result)] if counts else []

    def sum(self, values: Iterable[ir.Value]) -> ir.Value:
        """Return the sum of integers, of which there is one at least."""
        return reduce(self.builder.add, values)

    def minimum(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return the lesser of two signed integers."""
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def maximum(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return the greater of two signed integers."""
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    def load(self, pointer: ir.Value, type: ScalarType, lanes: int, mask: ir.Value | None = None) -> ir.Value:
        """Load neighbouring elements, or one. Lanes outside the mask are zero and are not read."""
        value_type = llvm_type(type, lanes)
        if type is ScalarType.BOOLEAN:
            return self.builder.trunc(self.load(pointer, ScalarType.UINT8, lanes, mask), value_type)
        if mask is None:
            return self.builder.load(pointer, typ=value_type, align=self._alignment(type.bytes))
        bits = vector_type(ir.IntType(type.bits), lanes)
        if not has_masks(type.bits):
            return self.builder.bitcast(self._load_within_page(pointer, bits, mask), value_type)
        name = f"llvm.masked.load.v{lanes}i{type.bits}.p0"
        zero = Literal(bits, "zeroinitializer")
        alignment = 0, self._alignment(type.bytes)
        loaded = intrinsic(self.builder, name, bits, [pointer, mask, zero], alignment=alignment)
        return self.builder.bitcast(loaded, value_type)

    def _load_within_page(self, pointer: ir.Value, type: ir.Type, mask: ir.Value, step: int = 1) -> ir.Value:
        """Load every `step`th element, and clear the lanes outside the mask.

        All bytes of a page can be read if one can. So the vectors are loaded whole, unless no lane is in the
        mask or they reach into another page: then the lanes of the mask are copied first.
        """
        bytes, count = type.element.width // 8, step * type.count
        copy = self._lanes_copy(vector_type(type.element, count))
        behind = self.builder.and_(self.builder.ptrtoint(pointer, I64), I64(PAGE - 1))
        reaches = self.builder.icmp_unsigned(">", behind, I64(PAGE - count * bytes))
        bits = self.builder.bitcast(mask, ir.IntType(type.count))
        apart = self.builder.or_(reaches, self.builder.icmp_unsigned("==", bits, bits.type(0)))
        with self.builder.if_then(apart, likely=False):
            spread = [lane // step + lane % step * type.count for lane in range(count)]
            lanes = mask if step == 1 else self._shuffled(mask, ir.zero(mask.type), spread)
            copy_lanes(self.builder, copy, pointer, lanes, bytes)
        address = self.builder.select(apart, copy, pointer)
        vectors = [self.offset(address, I64(part * type.count * bytes)) for part in range(step)]
        loaded = [self.builder.load(each, type, self._alignment(bytes)) for each in vectors]
        return self.builder.select(mask, self._picked(loaded, range(0, count, step)), ir.zero(type))

    def _lanes_copy(self, type: ir.Type) -> ir.Value:
        """Return the memory on the stack through which lanes of vectors of a type are copied."""
        if type not in self._copies:
            self._copies[type] = self.local(type)
        return self._copies[type]

    def stream(self, pointer: ir.Value, value: ir.Value, type: ScalarType) -> None:
        """Store a vector past the caches, to an address that is a multiple of its size."""
        if type is ScalarType.BOOLEAN:
            value = self.builder.zext(value, llvm_type(ScalarType.UINT8, self.lanes))
        elif type is ScalarType.FLOAT16:
            # LLVM has no such store of halves. Without the fence it would make this one of it again.
            lanes = self.lanes // 2
            pairs = self.builder.bitcast(value, llvm_type(ScalarType.FLOAT32, lanes))
            value = overloaded(self.builder, "arithmetic.fence", ScalarType.FLOAT32, lanes, [pairs])
        self.builder.store(value, pointer, align=type.bytes * self.lanes, is_streamed=True)

    def store(
        self, pointer: ir.Value, value: ir.Value, type: ScalarType, mask: ir.Value | None = None
    ) -> None:
        """Store neighbouring elements, or one. Lanes outside the mask are not written."""
        if type is ScalarType.BOOLEAN:
            lanes = value.type.count if isinstance(value.type, ir.VectorType) else 1
            type, value = ScalarType.UINT8, self.builder.zext(value, llvm_type(ScalarType.UINT8, lanes))
        if mask is None:
            self.builder.store(value, pointer, align=type.bytes)
            return
        bits = vector_type(ir.IntType(type.bits), self.lanes)
        if id(mask) in self._counts and not stores_by_masks(type.bits):
            store_first(self.builder, pointer, self.builder.bitcast(value, bits), self._counts[id(mask)][1])
            return
        if has_masks(type.bits):
            self._store_lanes(pointer, value, type, mask)
            return
        copy = self._lanes_copy(bits)
        self.builder.store(self.builder.bitcast(value, bits), copy)
        copy_lanes(self.builder, pointer, copy, mask, type.bytes)

    def _store_lanes(self, pointer: ir.Value, value: ir.Value, type: ScalarType, mask: ir.Value) -> None:
        """Store the lanes of a mask that is constant, or that the processor stores by."""
        bits = vector_type(ir.IntType(type.bits), self.lanes)
        name = f"llvm.masked.store.v{self.lanes}i{type.bits}.p0"
        operands = [self.builder.bitcast(value, bits), pointer, mask]
        intrinsic(self.builder, name, ir.VOID, operands, alignment=(1, type.bytes))

    def prefetch(self, pointer: ir.Value, written: bool = False, level: int = 1) -> None:
        """Prefetch the cache line of an address that will be read, or written. The address need not be
        valid."""
        operands = [pointer, I32(int(written)), I32(4 - level), I32(1)]
        intrinsic(self.builder, "llvm.prefetch.p0", ir.VOID, operands)

    def gather(
        self,
        pointer: ir.Value,
        stride: ir.Value | None,
        type: ScalarType,
        mask: ir.Value | None,
        distance: ir.Value | None = None,
    ) -> ir.Value:
        """Load elements `stride` bytes apart (None: the same one). Each is also moved by its lane of
        `distance`, in bytes of 32 or 64 bits. Lanes outside the mask are zero and are not read."""
        if type is ScalarType.BOOLEAN:
            found = self.gather(pointer, stride, ScalarType.UINT8, mask, distance)
            return self.builder.trunc(found, llvm_type(type, self.lanes))
        if type.bytes < 4 and gathers_by_instruction():
            return self._gather_parts(pointer, stride, type, mask, distance)
        addresses = self._addresses(pointer, self._distances(stride, distance))
        gathered = self._gathered(addresses, type.bits, mask)
        return self.builder.bitcast(gathered, llvm_type(type, self.lanes))

    def _gather_parts(
        self,
        pointer: ir.Value,
        stride: ir.Value | None,
        type: ScalarType,
        mask: ir.Value | None,
        distance: ir.Value | None,
    ) -> ir.Value:
        """Load elements of less than 32 bits as parts of the aligned 32 bits around them. Processors gather
        no less, and aligned words do not reach into another page."""
        odd = self.builder.and_(self.builder.ptrtoint(pointer, I64), I64(3))
        distances = self._distances(stride, distance)
        if distances is None:
            distances = self.broadcast(odd)
        else:
            distances = self.builder.add(
                distances, self.broadcast(self.narrowed(odd, distances.type.element))
            )
        three = Literal(distances.type, f"splat ({distances.type.element} 3)")
        part = self.builder.and_(distances, three)
        base = self.offset(pointer, self.builder.neg(odd))
        words = self._gathered(self._addresses(base, self.builder.sub(distances, part)), 32, mask)
        vector = vector_type(I32, self.lanes)
        part = part if part.type == vector else self.builder.trunc(part, vector)
        shifted = self.builder.lshr(words, self.builder.shl(part, Literal(vector, "splat (i32 3)")))
        bits = self.builder.trunc(shifted, vector_type(ir.IntType(type.bits), self.lanes))
        return self.builder.bitcast(bits, llvm_type(type, self.lanes))

    def _gathered(self, addresses: ir.Value, bits: int, mask: ir.Value | None) -> ir.Value:
        vector = vector_type(ir.IntType(bits), self.lanes)
        if mask is not None and not gathers_by_instruction():
            addresses, mask = self.builder.select(mask, addresses, self.broadcast(self._zero())), None
        name = f"llvm.masked.gather.v{self.lanes}i{bits}.v{self.lanes}p0"
        operands = [addresses, self._mask(mask), Literal(vector, "zeroinitializer")]
        return intrinsic(self.builder, name, vector, operands, alignment=(0, self._alignment(bits // 8)))

    def _zero(self) -> ir.Value:
        """Return the address of zeros, for lanes that read nothing."""
        if self._zeros is None:
            self._zeros = self.local(I64)
            with self.builder.goto_block(self.entry):
                self.builder.store(I64(0), self._zeros)
        return self._zeros

    def _alignment(self, bytes: int) -> int:
        return 1 if self.reads_unaligned else bytes

    def load_every_other(self, pointer: ir.Value, type: ScalarType, mask: ir.Value | None) -> ir.Value:
        """Load every other element. Lanes outside the mask are zero. Neither they nor what lies behind the
        last element are read."""
        if type is ScalarType.BOOLEAN:
            found = self.load_every_other(pointer, ScalarType.UINT8, mask)
            return self.builder.trunc(found, llvm_type(type, self.lanes))
        if mask is not None and not has_masks(type.bits):
            bits = vector_type(ir.IntType(type.bits), self.lanes)
            loaded = self._load_within_page(pointer, bits, mask, step=2)
            return self.builder.bitcast(loaded, llvm_type(type, self.lanes))
        if mask is None and (self.lanes < 16 or not has_masks(type.bits)):
            # The second half begins an element earlier, so that nothing behind the last element is read.
            # Before AVX-512 masked loads take longer.
            parts = [self.offset(pointer, I64(at * type.bytes)) for at in (0, self.lanes - 1)]
            chosen = [2 * lane + (2 * lane >= self.lanes) for lane in range(self.lanes)]
            return self._picked([self.load(part, type, self.lanes) for part in parts], chosen)
        even = vector_constant(I1, [lane % 2 == 0 for lane in range(self.lanes)])
        halves = []
        for half in range(2):
            address = self.offset(pointer, I64(half * self.lanes * type.bytes))
            read = even if mask is None else self.builder.and_(even, self._repeated(mask, half))
            halves.append(self.load(address, type, self.lanes, read))
        return self._picked(halves, [2 * lane for lane in range(self.lanes)])

    def _repeated(self, value: ir.Value, part: int, width: int = 2) -> ir.Value:
        """Repeat every lane `width` times, and return one vector of the result."""
        return self._picked([value], [(part * self.lanes + lane) // width for lane in range(self.lanes)])

    def _picked(self, vectors: Sequence[ir.Value], elements: Sequence[int]) -> ir.Value:
        """Return elements by their numbers in several vectors."""
        lanes = len(elements)
        first, *others = sorted({each // lanes for each in elements})
        second = others[0] if others else first
        begins = {first: 0, second: lanes if others else 0}
        chosen = [begins.get(each // lanes, 0) + each % lanes for each in elements]
        result = self._shuffled(vectors[first], vectors[second], chosen)
        for other in others[1:]:
            chosen = [
                lanes + each % lanes if each // lanes == other else lane for lane, each in enumerate(elements)
            ]
            result = self._shuffled(result, vectors[other], chosen)
        return result

    def _shuffled(self, first: ir.Value, second: ir.Value, lanes: Sequence[int]) -> ir.Value:
        """Return lanes of two vectors."""
        chosen = vector_constant(I32, lanes)
        return self.builder.shuffle_vector(first, second, chosen)

    def load_bundle(
        self, pointer: ir.Value, width: int, type: ScalarType, mask: ir.Value | None
    ) -> list[ir.Value]:
        """Load neighbouring elements and deinterleave them into `width` vectors. Lanes outside the mask are
        zero and are not read."""
        if type is ScalarType.BOOLEAN:
            narrow = llvm_type(type, self.lanes)
            read = self.load_bundle(pointer, width, ScalarType.UINT8, mask)
            return [self.builder.trunc(each, narrow) for each in read]
        if width == 2 and mask is None and type.bits * self.lanes == 256:
            return self._load_pairs(pointer, type)
        parts = [
            self.load(
                self.offset(pointer, I64(part * self.lanes * type.bytes)),
                type,
                self.lanes,
                None if mask is None else self._repeated(mask, part, width),
            )
            for part in range(width)
        ]
        return [
            self._picked(parts, [width * lane + number for lane in range(self.lanes)])
            for number in range(width)
        ]

    def _load_pairs(self, pointer: ir.Value, type: ScalarType) -> list[ir.Value]:
        """Load pairs of neighbours and deinterleave them into two vectors of 256 bits.

        The first and the third 128 bits are loaded into one vector, the others into another. Otherwise
        elements of the results would move between the halves of a vector, which takes one more instruction.
        """
        quarter = self.lanes // 2
        parts = [self.load(self.offset(pointer, I64(part * 16)), type, quarter) for part in range(4)]
        halves = [self._shuffled(parts[at], parts[at + 2], range(self.lanes)) for at in range(2)]
        half = quarter // 2
        first = [
            2 * lane + begin
            for start in (0, quarter)
            for begin in (start, self.lanes + start)
            for lane in range(half)
        ]
        low, high = halves
        return [self._shuffled(low, high, [each + number for each in first]) for number in range(2)]

    def store_bundle(
        self,
        pointer: ir.Value,
        values: Sequence[ir.Value],
        type: ScalarType,
        mask: ir.Value | None,
        streamed: bool = False,
    ) -> None:
        """Interleave the lanes of vectors and store them. Lanes outside the mask are not written. If
        `streamed`, full vectors bypass the caches, and the address is a multiple of their size."""
        width = len(values)
        for part in range(width):
            numbers = range(part * self.lanes, (part + 1) * self.lanes)
            elements = [number % width * self.lanes + number // width for number in numbers]
            address = self.offset(pointer, I64(part * self.lanes * type.bytes))
            interleaved = self._picked(values, elements)
            if streamed and mask is None:
                self.stream(address, interleaved, type)
            else:
                inside = None if mask is None else self._repeated(mask, part, width)
                self.store(address, interleaved, type, inside)

    def store_every_other(self, pointer: ir.Value, value: ir.Value, type: ScalarType) -> None:
        """Store every other element. The elements between stay as they are."""
        even = vector_constant(I1, [lane % 2 == 0 for lane in range(self.lanes)])
        for half in range(2):
            address = self.offset(pointer, I64(half * self.lanes * type.bytes))
            self._store_lanes(address, self._repeated(value, half), type, even)

    def scatter(
        self,
        pointer: ir.Value,
        stride: ir.Value | None,
        value: ir.Value,
        type: ScalarType,
        mask: ir.Value | None,
        distance: ir.Value | None = None,
    ) -> None:
        """Store elements `stride` bytes apart (None: at one address), each moved by its lane of `distance`,
        in the order of the lanes."""
        bits = vector_type(ir.IntType(type.bits), self.lanes)
        name = f"llvm.masked.scatter.v{self.lanes}i{type.bits}.v{self.lanes}p0"
        operands = [
            self.builder.bitcast(value, bits),
            self._addresses(pointer, self._distances(stride, distance)),
            self._mask(mask),
        ]
        intrinsic(self.builder, name, ir.VOID, operands, alignment=(1, type.bytes))

    def narrowed(self, value: ir.Value, type: ir.Type) -> ir.Value:
        """Return a 64-bit integer in a type that holds it."""
        return value if value.type == type else self.builder.trunc(value, type)

    def unsigned(self, value: ir.Value, type: ir.Type) -> ir.Value:
        """Return integers that are not negative in a type that is no narrower."""
        if is_vector(value):
            type = vector_type(type, value.type.count)
        return value if value.type == type else self.builder.zext(value, type)

    def total(self, values: Sequence[ir.Value]) -> ir.Value | None:
        """Return the sum of vectors of integers, in the widest of their types. Return None for no vectors."""
        if not values:
            return None
        widest = max((value.type for value in values), key=lambda type: int(type.element.width))
        return self.sum(each if each.type == widest else self.builder.sext(each, widest) for each in values)

    def _distances(self, stride: ir.Value | None, distance: ir.Value | None) -> ir.Value | None:
        """Return the distances of the lanes in bytes. If computed distances have 32 bits, so have those of
        strides, because no tensor that these reach is larger."""
        if stride is None:
            return distance
        vector = vector_type(I64, self.lanes) if distance is None else distance.type
        step = self.broadcast(self.narrowed(stride, vector.element))
        along = self.builder.mul(step, vector_constant(vector.element, range(self.lanes)))
        return along if distance is None else self.builder.add(distance, along)

    def _addresses(self, pointer: ir.Value, distances: ir.Value | None) -> ir.Value:
        """Return the addresses of lanes."""
        if distances is None:
            return self.broadcast(pointer)
        return self.builder.gep(pointer, [distances], source_etype=I8)

    def _mask(self, mask: ir.Value | None) -> ir.Value:
        return mask if mask is not None else Literal(vector_type(I1, self.lanes), "splat (i1 true)")
