"""Elements as text, the way DxDispatch prints them."""

from __future__ import annotations

from opendml.frontends.dxdispatch.values import Elements


def one_line(elements: Elements) -> str:
    """Return the elements separated by commas, floats with six significant digits."""
    form = "g" if elements.dtype.kind == "f" else "d"
    return ", ".join([format(value, form) for value in elements.tolist()])


def one_element_a_line(elements: Elements) -> str:
    """Index, value and bits of each element. Floats have as many digits as it takes to read them back."""
    width = len(str(elements.size - 1))
    digits = elements.dtype.itemsize * 2
    bits = elements.view(f"u{elements.dtype.itemsize}").tolist()
    return "\n".join(
        f"[{index:{width}}] {value!s} (0x{pattern:0{digits}X})"
        for index, (value, pattern) in enumerate(zip(elements, bits, strict=True))
    )
