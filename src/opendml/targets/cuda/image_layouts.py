"""Stores images between convolutions with channels last.

Convolutions by the copy engine read images whose channels are contiguous (`channels_last`). A kernel that
writes a temporary can store it in that order. No copy is then needed, and all kernels that access the
temporary move along it in the other order. Copies took 190 of 1640 us of ResNet-50 with batch 32 (H100).

A convolution of each channel alone has a kernel of its own if its images and results have that order, also if
the compiler has unrolled its windows. With it ConvNeXt-T of bfloat16 takes half the time, and MobileNetV2 of
float16 0.92 (batch 32).

An element-wise kernel that reads images with channels last stores them so for products. It need not transpose
them then, and reads several channels of a pixel at once, such as those that upsampling mixes.

A convolution whose result only a copy reads, which stores it with channels last, stores it so itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from opendml.compiler.kernel import Access, Kernel, KernelSequence, number_of, operations_of
from opendml.late_dataclass import dataclass
from opendml.program.node import Operation, ordered
from opendml.targets.common.kinds import KernelKind, kind_of
from opendml.targets.cuda.channels_last import copies_of
from opendml.targets.cuda.contraction_source import contraction_of, stored_of
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.rolled_windows import as_depthwise, rolled_if_large
from opendml.targets.cuda.schedule_contraction import Shape
from opendml.targets.cuda.schedule_depthwise import is_depthwise
from opendml.targets.cuda.schedule_warpgroups import warpgroup_tiles
from opendml.targets.cuda.tensor_map import ADDRESS_ALIGNMENT
from opendml.targets.cuda.windows import bounds_of

_KINDS = (KernelKind.ELEMENT_WISE, KernelKind.REDUCTION, KernelKind.CONTRACTION)
"""Kinds of kernels that access images in any order."""


def with_images_channels_last(sequence: KernelSequence, machine: CudaMachine) -> KernelSequence:
    """Return the kernels with channels last in temporaries of which a convolution would read a copy, or in
    which each channel has a convolution of its own."""
    if not machine.multiplies_by_warpgroups or sequence.repeats:
        return sequence
    sequence = _without_copies_of_results(sequence, machine)
    kernels = list(sequence.kernels)
    users: dict[int, set[int]] = {}
    for number, kernel in enumerate(kernels):
        for access in kernel.accesses:
            if access.buffer in sequence.temporaries:
                users.setdefault(access.buffer, set()).add(number)
    done = set[int]()
    for number in range(len(kernels)):
        copied = _copied_images(kernels[number], machine)
        alone = _images_of_depthwise(kernels[number])
        single = () if alone else chain(copied, _turned_images(number, kernels, users))
        for wanted in [alone] if alone else ([each] for each in single):
            considered = set(done)
            found = _reordered(kernels, wanted, users, sequence.temporaries, considered)
            if found is not None and (not alone or _has_depthwise_kernel(found[number], machine)):
                kernels = found
            elif alone:
                # A product may want a part of these images.
                continue
            done = considered
    return replace(sequence, kernels=kernels)


def _without_copies_of_results(sequence: KernelSequence, machine: CudaMachine) -> KernelSequence:
    """Return the kernels without copies of images that a convolution by warpgroups can store itself."""
    kernels, temporaries = list(sequence.kernels), dict(sequence.temporaries)
    for copy in sequence.kernels:
        load, store = copy.accesses[0], copy.accesses[-1]
        is_copy = copy.values[0].operation is Operation.SOURCE and not copy.values[0].operands
        if not is_copy or len(copy.accesses) != 2 or load.buffer not in temporaries:
            continue
        # The copy reads the whole temporary, and nobody else does.
        whole = math.prod(copy.domain) * load.type.bytes == temporaries[load.buffer]
        own = [each for each in kernels if any(a.buffer == load.buffer for a in each.accesses)]
        if not whole or len(own) != 2 or own[1] is not copy or store.buffer in temporaries:
            continue
        stored = _storing_as(own[0], copy)
        if stored is not None and _takes_warpgroups(stored, machine):
            kernels = [stored if each is own[0] else each for each in kernels if each is not copy]
            del temporaries[load.buffer]
    return replace(sequence, kernels=kernels, temporaries=temporaries)


def _takes_warpgroups(kernel: Kernel, machine: CudaMachine) -> bool:
    """Return whether warpgroups compute a kernel, with copies of operands or without, and its results are
    contiguous along rows or columns."""
    if kind_of(kernel) is not KernelKind.CONTRACTION:
        return False
    shape, first = Shape(kernel, [ADDRESS_ALIGNMENT] * len(kernel.accesses)), len(kernel.loads)
    along = [loop.strides[first] for role in ("m", "n") for loop in shape.loops[role][-1:]]
    if kernel.stores[0].type.bytes not in along:
        return False
    return bool(copies_of(kernel, machine).each) or any(True for _ in warpgroup_tiles(shape, machine))


def _storing_as(kernel: Kernel, copy: Kernel) -> Kernel | None:
    """Return a kernel that stores what a copy stores of its result; None if the copy's strides have no
    equivalent."""
    (load,), (store,) = copy.loads, copy.stores
    stores, moved = list(kernel.stores), zip(load.strides, store.strides, copy.domain, strict=True)
    steps = [(before, after, count) for before, after, count in moved if count > 1]
    for number, own in enumerate(kernel.stores):
        if own.buffer != load.buffer:
            continue
        strides = [
            0 if not stride else _step_after(steps, stride, count)
            for stride, count in zip(own.strides, kernel.domain, strict=True)
        ]
        if own.offset != load.offset or None in strides:
            return None
        stores[number] = replace(store, strides=tuple(each or 0 for each in strides))
    return replace(kernel, stores=tuple(stores))


def _step_after(steps: Iterable[tuple[int, int, int]], stride: int, count: int) -> int | None:
    """Return the stride of a loop in the order after some steps, from that before; None if it spans several
    of them."""
    for before, after, own in steps:
        if 0 < before <= stride and stride % before == 0 and stride * count <= before * own:
            return stride // before * after
    return None


def _has_depthwise_kernel(kernel: Kernel, machine: CudaMachine) -> bool:
    return is_depthwise(kernel, machine) if kernel.axes else as_depthwise(kernel, machine) is not None


def _reordered(
    kernels: Sequence[Kernel],
    wanted: Iterable[_Wanted],
    users: Mapping[int, Collection[int]],
    sizes: Mapping[int, int],
    done: set[int],
) -> list[Kernel] | None:
    """Return the kernels with channels last in wanted images, whose buffers have `sizes`; None if a kernel
    cannot access these. Buffers that were considered are `done`."""
    found = list(kernels)
    for buffers, images in wanted:
        if not all(buffer in users and buffer not in done for buffer in buffers):
            return None
        together = set[int]().union(*(_computed_together(each, found, users) for each in buffers))
        done |= together
        if not all(buffer in users and images.fill(sizes[buffer]) for buffer in together):
            return None
        for number in set[int]().union(*(users[buffer] for buffer in together)):
            kernel = images.accessed_by(found[number], together)
            if kernel is None:
                return None
            found[number] = kernel
    return found


_Wanted = tuple[Sequence[int], "_Images"]
"""Buffers that a convolution wants with channels last, and the images that they have."""


def _copied_images(kernel: Kernel, machine: CudaMachine) -> Iterator[_Wanted]:
    """Yield images of which a convolution would read copies."""
    for copy in copies_of(kernel, machine).each:
        load = kernel.loads[copy.number]
        bytes = load.type.bytes
        if not copy.bounds and load.buffer is not None:
            yield [load.buffer], _Images(copy.sizes[-1], copy.source_strides[-1] // bytes, bytes)


def _turned_images(
    number: int, kernels: Sequence[Kernel], users: Mapping[int, Collection[int]]
) -> Iterator[_Wanted]:
    """Yield images that an element-wise kernel turns round for products, or copies that turn them back."""
    found = _turned(kernels[number])
    if found is not None:
        (buffer,), images = found
        others = [kernels[each] for each in users.get(buffer, ()) if _turned(kernels[each]) != found]
        if others and all(
            kind_of(each) is KernelKind.CONTRACTION or _turns_back(each, buffer, images) for each in others
        ):
            yield found


def _turns_back(kernel: Kernel, buffer: int, images: _Images) -> bool:
    """Return whether an element-wise kernel reads and stores contiguous elements if images have channels
    last."""
    moved = images.accessed_by(kernel, {buffer}) if kind_of(kernel) is KernelKind.ELEMENT_WISE else None
    return moved is not None and any(
        size > 1 and all(access.strides[number] == access.type.bytes for access in moved.accesses)
        for number, size in enumerate(kernel.domain)
    )


def _turned(kernel: Kernel) -> _Wanted | None:
    """Return images that an element-wise kernel stores along pixels, though it reads along channels."""
    store, *others = kernel.stores
    if kind_of(kernel) is not KernelKind.ELEMENT_WISE or others or store.buffer is None:
        return None
    moving = [number for number, size in enumerate(kernel.domain) if size > 1]
    loads = [load for load in kernel.loads if load.buffer is not None]
    for channels in moving:
        along = [load for load in loads if load.strides[channels]]
        apart = [load for load in along if load.strides[channels] != load.type.bytes]
        # A value of each channel alone, such as a weight, may lie anyhow.
        is_read = len(along) > len(apart) and all(
            not any(load.strides[each] for each in moving if each != channels) for load in apart
        )
        step = store.strides[channels]
        if (
            is_read
            and step > store.type.bytes
            and any(store.strides[each] == store.type.bytes for each in moving)
        ):
            whole = min(
                (each for each in store.strides if each > step), default=step * kernel.domain[channels]
            )
            return [store.buffer], _Images(whole // step, step // store.type.bytes, store.type.bytes)
    return None


def _images_of_depthwise(kernel: Kernel) -> list[_Wanted]:
    """Return images and results of a convolution of each channel alone that lie otherwise than with channels
    last; nothing if there are none, or it is another kernel."""
    if not kernel.axes:
        return next(filter(None, map(_images_of_depthwise, rolled_if_large(kernel))), [])
    if Operation.CONTRACTION not in operations_of(kernel.values):
        return []
    operands = [stored_of(each) for each in contraction_of(kernel.values).operands]
    if len(kernel.axes) < 2 or any(each.operation is not Operation.SOURCE for each in operands):
        return []
    for image, filters in (operands, operands[::-1]):
        load, other = (kernel.loads[number_of(each)] for each in (image, filters))
        of_filters = [
            dimension
            for dimension, size in enumerate(kernel.domain)
            if dimension not in kernel.axes and size > 1 and other.strides[dimension]
        ]
        if len(of_filters) != 1:
            continue
        (channels,) = of_filters
        if not load.strides[channels]:
            return []
        # Windows with strides leave fewer pixels than their images have.
        apart: dict[_Images, list[int]] = {}
        for each in (load, *kernel.stores):
            if each.strides[channels] > each.type.bytes and each.buffer is not None:
                images = _Images(kernel.domain[channels], *_pixels(each, channels))
                apart.setdefault(images, []).append(each.buffer)
        return [(buffers, images) for images, buffers in apart.items()]
    return []


def _pixels(access: Access, channels: int) -> tuple[int, int]:
    """Return the pixels of a channel of an access along `channels`, and the bytes of an element."""
    return access.strides[channels] // access.type.bytes, access.type.bytes


def _computed_together(
    buffer: int, kernels: Sequence[Kernel], users: Mapping[int, Collection[int]]
) -> set[int]:
    """Return the buffers of which kernels compute elements from each other's, such as residuals. They should
    have one order: an access in another order than the others is slow."""
    found, pending = {buffer}, [buffer]
    while pending:
        last = pending.pop()
        for number in users.get(last, ()):
            accesses = kernels[number].accesses
            orders = {access.strides for access in accesses if access.buffer == last}
            for access in accesses:
                if access.buffer is not None and access.buffer not in found and access.strides in orders:
                    found.add(access.buffer)
                    pending.append(access.buffer)
    return found


@dataclass(frozen=True, slots=True)
class _Images:
    """Images with some `channels`, each of which has some `pixels`, of elements of some bytes.

    At first the pixels of a channel follow each other, afterwards the channels of a pixel.
    """

    channels: int
    pixels: int
    bytes: int

    def fill(self, size: int) -> bool:
        """Return whether a buffer has whole images, and the copy engine can load them with channels last."""
        row = self.channels * self.bytes
        return self.pixels > 1 and size % (row * self.pixels) == 0 and row % ADDRESS_ALIGNMENT == 0

    def accessed_by(self, kernel: Kernel, buffers: Container[int]) -> Kernel | None:
        """Return a kernel that accesses images of some buffers in the other order; None if it cannot."""
        if kind_of(kernel) not in _KINDS:
            return None
        bounds = dict[int, Mapping[int, int]]()
        for node in ordered(kernel.values):
            if node.operation is Operation.SOURCE and node.operands:
                # The second operand is a computed place.
                if len(node.operands) > 1 and kernel.loads[number_of(node)].buffer in buffers:
                    return None
                bounds[number_of(node)] = bounds_of(kernel.accesses, node.operands) or {}
        found = list[Access]()
        for number, access in enumerate(kernel.accesses):
            moved = access
            if access.buffer is not None and access.buffer in buffers:
                counters = bounds.get(number, {}) if number < len(kernel.loads) else {}
                bounded = [(kernel.loads[counter], limit) for counter, limit in counters.items()]
                other = self._moved(access, kernel.domain, bounded)
                if other is None:
                    return None
                moved = other
            found.append(moved)
        count = len(kernel.loads)
        return replace(kernel, loads=tuple(found[:count]), stores=tuple(found[count:]))

    def _moved(
        self, access: Access, domain: Sequence[int], bounded: Sequence[tuple[Access, int]]
    ) -> Access | None:
        """Return an access in the other order; None if it moves along channels and pixels together.

        It only reads where counters are not negative and below their limits, as in images without padding.
        """
        steps = [self._place(stride, nearest=True) for stride in access.strides]
        free, offset = list(zip(steps, domain, strict=True)), access.offset
        before = list[tuple[tuple[int, int, int], int]]()
        for counter, limit in bounded:
            own = [number for number, stride in enumerate(counter.strides) if stride and domain[number] > 1]
            found = {divmod(access.strides[number], counter.strides[number]) for number in own}
            bytes, rest = next(iter(found), (0, 0))
            step = self._place(bytes, nearest=True)
            is_alone = all(free[number][1] > 1 and counter.strides[number] > 0 for number in own)
            if rest or step is None or len(found) != 1 or not is_alone:
                continue
            reach = sum(counter.strides[number] * (domain[number] - 1) for number in own)
            least, most = max(0, counter.offset), min(limit - 1, counter.offset + reach)
            for number in own:
                stride = counter.strides[number]
                steps[number] = step[0] * stride, step[1] * stride, step[2] * stride
                free[number] = step, 1
            free.append((step, most - least + 1))
            before.append((step, least - counter.offset))
            offset += bytes * (least - counter.offset)
        begin = self._place(offset, nearest=False)
        if access.type.bytes != self.bytes or begin is None or None in steps:
            return None
        moving = [(step, count) for step, count in free if step and count > 1]
        if any(sum(map(bool, step)) > 1 for step, _ in moving):
            return None
        # A loop over channels and the next images is one over images if it skips whole ones.
        ranges = [[begin[axis], begin[axis]] for axis in range(3)]
        for step, count in moving:
            for axis in range(3):
                reach = step[axis] * (count - 1)
                ranges[axis][reach > 0] += reach
        (_, _), channels, pixels = ranges
        if channels[0] < 0 or channels[1] >= self.channels:
            return None
        if pixels[0] < 0 or pixels[1] >= self.pixels:
            return None
        strides = tuple(
            self._bytes_to(step) if step and count > 1 else 0
            for step, count in zip(steps, domain, strict=True)
        )
        offset = self._bytes_to(begin) - sum(self._bytes_to(step) * count for step, count in before)
        return replace(access, offset=offset, strides=strides)

    def _place(self, bytes: int, nearest: bool) -> tuple[int, int, int] | None:
        """Return how many images, channels and pixels a distance has; None if it is no whole number.

        The `nearest` channel may be one after the distance, so that the pixels are negative.
        """
        element, rest = divmod(bytes, self.bytes)
        channel = (element + (self.pixels // 2 if nearest else 0)) // self.pixels
        image, own = divmod(channel, self.channels)
        if nearest and own > self.channels // 2 and element < 0:
            image, own = image + 1, own - self.channels
        return None if rest else (image, own, element - channel * self.pixels)

    def _bytes_to(self, place: tuple[int, int, int]) -> int:
        """Return the distance of a place with channels last."""
        image, channel, pixel = place
        return ((image * self.pixels + pixel) * self.channels + channel) * self.bytes
