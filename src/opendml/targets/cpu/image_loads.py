"""Loads of windows of an image with margins. A block copies the image to scratch, or holds its rows in
vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opendml.compiler.kernel import number_of
from opendml.program.node import Node, Operation, is_rare
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I32, I64
from opendml.targets.cpu.loads import At, LoadsOfRows, Pointers, Range, Values
from opendml.targets.cpu.pattern import IMAGE_BYTES, LINE, CopiedImage, ElementWalk, ImagePlace
from opendml.targets.cpu.values import llvm_type, vector_constant

if TYPE_CHECKING:
    from opendml.targets.cpu.kernel_code import KernelCode


class ImageLoads(LoadsOfRows):
    """Loads of windows of an image, whose margins are zeros."""

    def __init__(self, kernel: KernelCode) -> None:
        super().__init__(kernel)
        image = kernel.pattern.walk_as(ElementWalk).shared_rows
        if not isinstance(image, CopiedImage):
            raise TypeError("rows read an image")
        self._image = image
        self.alike, self.counts = image.alike, tuple(dict.fromkeys((image.together, 1)))
        self._access, self._place = next(
            (number, place) for number, place in enumerate(image.places) if place is not None
        )
        self._type = self.accesses[self._access].type
        stride = kernel.parameter(kernel.layout.row_stride(self._access, 0))
        self._line = self.builder.sdiv(stride, I64(image.strides[0]))
        """The bytes from one row of the image to the next."""
        self._sizes = [kernel.parameter(kernel.layout.offset(each)) for each in image.bounds]
        self.in_order = self._elements()
        """The nodes of elements, each as late as can be."""
        self.lag = self._nodes_of_row()
        """The nodes of a window's row that another row of windows begins with."""

    def _elements(self) -> list[Node]:
        """Return the nodes of elements in the order of computation: the longest chain of operands first, so
        that others are loaded when they are needed."""
        kernel, found, depths = self.kernel, dict[int, Node](), dict[int, int]()
        for node in kernel.nodes:
            depths[id(node)] = 1 + max((depths[id(each)] for each in node.operands), default=0)
        pending = list(reversed(kernel.pattern.values))
        opened = set[int]()
        while pending:
            node = pending.pop()
            if id(node) in found or kernel.levels[id(node)] is not Level.ELEMENT:
                continue
            if id(node) in opened or self._place_in_image(node) is not None:
                found[id(node)] = node
                continue
            opened.add(id(node))
            operands = node.operands[::2] if is_rare(node) else node.operands
            pending += [node, *sorted(operands, key=lambda each: depths[id(each)])]
        return list(found.values())

    def _nodes_of_row(self) -> int:
        """Return the number of nodes from the first load of a window to the first that another row of windows
        begins with. 0: loads are in another order."""
        begins: dict[int, int] = {}
        for number, node in enumerate(self.in_order):
            place = self._place_in_image(node)
            if place is not None:
                begins.setdefault(self._element_of(place)[0], number)
        first = min(begins)
        return max(0, begins.get(first + self._image.strides[0], 0) - begins[first])

    def _place_in_image(self, node: Node) -> ImagePlace | None:
        return self._image.places[number_of(node)] if node.operation is Operation.SOURCE else None

    def _first_element(self, pointers: Pointers) -> ir.Value:
        """Return the address of the first element of the image."""
        row, column = self._element_of(self._place)
        before = self.builder.add(self.builder.mul(self._line, I64(row)), I64(column * self._type.bytes))
        return self.code.offset(pointers[self._access], self.builder.neg(before))

    def _element_of(self, place: ImagePlace) -> tuple[int, int]:
        """Return the row and the column of the image at a place."""
        (down, along), (row, column) = self._image.strides, self._image.planes[place.plane]
        return place.row * down + row, place.column * along + column


class CopiedImageLoads(ImageLoads):
    """Loads of windows of an image that is copied to scratch.

    Before the rows of a block, the part of the image that they read is copied in planes. The margins around
    it are zeros. So windows need no conditions, and no masks behind the last column: what is read there is
    not stored.
    """

    def __init__(self, kernel: KernelCode) -> None:
        super().__init__(kernel)
        image, builder = self._image, self.builder
        rows, columns = image.reach()
        self._first = rows[0], columns[0]
        size, vector = I64(self._type.bytes), self._type.bytes * kernel.lanes
        width = builder.add(self.code.minimum(kernel.block, kernel.inner), I64(len(columns) - 1))
        chunk = self.code.minimum(kernel.chunk, kernel.row_counts[0])
        height = builder.add(chunk, I64(len(rows) - 1))
        self._pitch = builder.mul(width, size)
        plane = builder.add(builder.mul(height, self._pitch), I64(vector + LINE - 1))
        self._plane_bytes = builder.and_(plane, I64(-LINE))
        rests = len(image.planes) * (vector + LINE) + vector
        self._scratch = kernel.reserve(ScalarType.UINT8, IMAGE_BYTES + rests)
        self._ahead = builder.mul(builder.mul(chunk, I64(image.strides[0])), self._line)
        """The bytes from the part of the image that a block reads to that of the next block."""
        self._origin: tuple[ir.Value, ir.Value] = I64(0), I64(0)
        """The first row and column of the block at hand."""
        self._rows: dict[tuple[int, int], ir.Value] = {}
        """The addresses from which rows of planes are read by an index, for the rows at hand."""

    def begin(self) -> None:
        """Clear the planes. If there is one block, the same margins remain."""
        self._clear()

    def _clear(self) -> None:
        self._clear_bytes(self._scratch, self.builder.mul(self._plane_bytes, I64(len(self._image.planes))))

    def _clear_bytes(self, place: ir.Value, count: ir.Value) -> None:
        """Store zeros in some bytes, and in those that a last vector has behind them."""
        zeros = ir.zero(llvm_type(self._type, self.kernel.lanes))
        vector = self._type.bytes * self.kernel.lanes
        with self.code.loop(I64(0), self.builder.add(count, I64(vector - 1)), vector) as at:
            self.code.store(self.code.offset(place, at), zeros, self._type)

    def begin_block(self, pointers: Pointers, rows: Range, columns: Range) -> None:
        """Copy the part of the image that a block reads."""
        self._origin = rows[0], columns[0]
        is_part = self.builder.icmp_signed("!=", self.kernel.blocks, I64(1))
        with self.builder.if_then(is_part):
            self._clear()
        image = self._first_element(pointers)
        down = self._image.strides[0]
        for first in sorted({row for row, _ in self._image.planes}):
            planes = [number for number, (row, _) in enumerate(self._image.planes) if row == first]
            seen = [self._image.reach(number)[0] for number in planes]
            whole, part = self._within(rows, seen, self._sizes[0], down, first)
            self._clear_rows(planes, (whole[0], part[0]), (part[1], whole[1]))
            with self.code.loop(*part) as line:
                number = self.builder.add(self.builder.mul(line, I64(down)), I64(first))
                source = self.code.offset(image, self.builder.mul(number, self._line))
                self._copy_row(source, planes, line, columns)

    def _clear_rows(self, planes: Sequence[int], *parts: Range) -> None:
        """Clear rows of planes, if blocks have other margins than the block before."""
        is_part = self.builder.icmp_signed("!=", self.kernel.chunks, I64(1))
        with self.builder.if_then(is_part):
            for part in parts:
                with self.code.loop(*part) as line:
                    for plane in planes:
                        row = self.code.offset(self._plane_row(plane, line), self._begin())
                        self._clear_bytes(row, self._pitch)

    def _within(
        self, block: Range, reaches: Sequence[range], size: ir.Value, stride: int, first: int
    ) -> tuple[Range, Range]:
        """Return the rows (or columns) of planes that a block reads, and those of them that are in the image.
        Planes begin with `first` in the image, and their rows lie `stride` apart there."""
        start = self.builder.add(block[0], I64(min(each[0] for each in reaches)))
        stop = self.builder.add(block[1], I64(max(each[-1] for each in reaches)))
        count = self.builder.sdiv(self.builder.add(size, I64(stride - 1 - first)), I64(stride))
        begin = self.code.minimum(self.code.maximum(start, I64(0)), stop)
        return (start, stop), (begin, self.code.maximum(self.code.minimum(stop, count), begin))

    def _plane_row(self, plane: int, line: ir.Value) -> ir.Value:
        """Return where a row of a plane is read by an index."""
        row = self.builder.add(self._origin[0], I64(self._first[0]))
        at = self.builder.mul(self.builder.sub(line, row), self._pitch)
        at = self.builder.add(at, self.builder.mul(self._plane_bytes, I64(plane)))
        return self.code.offset(self._scratch, self.builder.sub(at, self._begin()))

    def _begin(self) -> ir.Value:
        """Return the bytes from where a row would begin to the first column that the block reads."""
        column = self.builder.add(self._origin[1], I64(self._first[1]))
        return self.builder.mul(column, I64(self._type.bytes))

    def _copy_row(self, source: ir.Value, planes: Sequence[int], line: ir.Value, columns: Range) -> None:
        """Copy what a block reads of a row of the image to a row of planes.

        Zeros may follow the last element: they belong to the margin, or to the next row, which is copied
        later.
        """
        along, size = self._image.strides[1], self._type.bytes
        targets = [self._plane_row(plane, line) for plane in planes]
        seen = [self._image.reach(plane)[1] for plane in planes]
        first = self._image.planes[planes[-1]][1]

        def copy(index: ir.Value, mask: ir.Value | None) -> None:
            address = self.code.element_at(source, index, I64(along * size))
            self.code.prefetch(self.code.offset(address, self._ahead), level=2)
            if len(planes) > 1:
                values = self.code.load_bundle(address, along, self._type, mask)
            elif along > 1:
                address = self.code.offset(address, I64(first * size))
                values = [self.code.load_every_other(address, self._type, mask)]
            else:
                values = [self.code.load(address, self._type, self.kernel.lanes, mask)]
            for target, value in zip(targets, values, strict=True):
                self.code.store(self.code.element_at(target, index, I64(size)), value, self._type)

        _, (start, stop) = self._within(columns, seen, self._sizes[1], along, first)
        self.code.vector_loop(start, stop, copy)
        if len(planes) > 1:
            # If the image has an odd number of columns, the first plane has one more.
            count = self._sizes[1]
            (begin, end), _ = self._within(columns, seen[:1], count, along, 0)
            last = self.builder.sdiv(count, I64(along))
            is_odd = self.builder.icmp_signed("!=", self.builder.and_(count, I64(1)), I64(0))
            is_read = self.builder.and_(
                self.builder.icmp_signed("<=", begin, last), self.builder.icmp_signed("<", last, end)
            )
            with self.builder.if_then(self.builder.and_(is_odd, is_read)):
                place = self.code.element_at(source, last, I64(along * size))
                value = self.code.load(place, self._type, 1)
                self.code.store(self.code.element_at(targets[0], last, I64(size)), value, self._type)

    def begin_rows(self, row: ir.Value, at_rows: Sequence[tuple[Pointers, Values]]) -> None:
        """Find the rows of planes that some rows read."""
        read = {
            (place.plane, place.row + number)
            for place in self._image.places
            if place is not None
            for number in range(len(at_rows))
        }
        self._rows = {
            (plane, number): self._plane_row(plane, self.builder.add(row, I64(number)))
            for plane, number in sorted(read)
        }

    def loaded(self, node: Node, at: At, values: Values) -> Values:
        """Return a load, which an earlier row may have loaded already."""
        place = self._place_in_image(node)
        if place is None or at.index is None:
            return super().loaded(node, at, values)
        key = place.plane, place.row + self._row, place.column
        if key not in self._found:
            index = self.builder.add(at.index, I64(place.column))
            address = self.code.element_at(self._rows[key[:2]], index, I64(self._type.bytes))
            self._found[key] = self.code.load(address, self._type, at.lanes)
        return {id(node): self._found[key]}


class ImageRowLoads(ImageLoads):
    """Loads of windows of an image whose rows fit a vector.

    Each row of the image is loaded once, with zeros outside. The elements of windows are shuffled from there.
    """

    def __init__(self, kernel: KernelCode) -> None:
        super().__init__(kernel)
        self._columns = self._columns_read()
        self._origin: ir.Value | None = None
        """The address of the first element of the image."""
        self._rows: dict[int, tuple[ir.Value, ir.Value]] = {}
        """The addresses of rows of the image and their masks, by their distance from the first row of the
        first window."""

    def _columns_read(self) -> ir.Value:
        """Return the mask of the columns that windows read in the image."""
        along = self._image.strides[1]
        read = [self._element_of(place)[1] for place in self._image.places if place is not None]
        last = self.builder.mul(self.builder.sub(self.kernel.inner, I64(1)), I64(along))
        stop = self.code.minimum(self._sizes[1], self.builder.add(last, I64(max(read) + 1)))
        before = self.builder.not_(self.code.first_lanes(I64(max(0, min(read)))))
        return self.builder.and_(self.code.first_lanes(stop), before)

    def begin_block(self, pointers: Pointers, rows: Range, columns: Range) -> None:
        """Find the address of the image."""
        self._origin = self._first_element(pointers)

    def begin_rows(self, row: ir.Value, at_rows: Sequence[tuple[Pointers, Values]]) -> None:
        """Find the rows of the image that some rows read. Those outside it are masked."""
        down = self._image.strides[0]
        read = {
            self._element_of(place)[0] + number * down
            for place in self._image.places
            if place is not None
            for number in range(len(at_rows))
        }
        assert self._origin is not None
        nothing = ir.zero(self._columns.type)
        for distance in sorted(read):
            line = self.builder.add(self.builder.mul(row, I64(down)), I64(distance))
            is_inside = self.builder.icmp_unsigned("<", line, self._sizes[0])
            address = self.code.offset(self._origin, self.builder.mul(line, self._line))
            self._rows[distance] = address, self.builder.select(is_inside, self._columns, nothing)

    def loaded(self, node: Node, at: At, values: Values) -> Values:
        """Return a load, whose row an earlier load may have found already."""
        place = self._place_in_image(node)
        if place is None or at.index is None:
            return super().loaded(node, at, values)
        down, along = self._image.strides
        row, column = self._element_of(place)
        row += self._row * down
        if row not in self._found:
            address, mask = self._rows[row]
            self._found[row] = self.code.load(address, self._type, at.lanes, mask)
        if (row, column) not in self._found:
            read = [column + along * lane for lane in range(at.lanes)]
            lanes = [each if 0 <= each < at.lanes else at.lanes for each in read]
            loaded = self._found[row]
            self._found[row, column] = self.builder.shuffle_vector(
                loaded, ir.zero(loaded.type), vector_constant(I32, lanes)
            )
        return {id(node): self._found[row, column]}
