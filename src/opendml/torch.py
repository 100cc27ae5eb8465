"""A backend of `torch.compile`, and a loader of programs of `torch.export`. Needs `opendml[torch]`."""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("opendml.torch needs PyTorch: pip install 'opendml[torch]'") from error

from opendml.frontends.torch.backend import backend, explain
from opendml.frontends.torch.programs import TorchProgram as Program
from opendml.frontends.torch.programs import load
from opendml.frontends.torch.report import FallbackWarning, GraphReport
from opendml.frontends.torch.report import TorchExplanation as Explanation

__all__ = ["Explanation", "FallbackWarning", "GraphReport", "Program", "backend", "explain", "load"]


def __dir__() -> list[str]:
    """Return the public names, without the imported packages."""
    return sorted([*__all__, "__all__", "__doc__"])
