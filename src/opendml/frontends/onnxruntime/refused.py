"""The classes of ONNX Runtime that opendml does not have. They exist, and raise when they are used."""

from __future__ import annotations

from typing import Any, NoReturn

from opendml.errors import Unsupported

_ADAPTERS = "merge the adapter into the weights of the model"
_CONTEXTS = "EPContext nodes hold code of other providers"
_COMPILE = "`opendml compile MODEL -o FILE` and OnnxModel.save(path, compiled=True) write compiled files"
_PARTS = "session.model.parts(inputs) and session.model.explain() tell where nodes run"

REFUSED = {
    "AdapterFormat": _ADAPTERS,
    "LoraAdapter": _ADAPTERS,
    "ModelCompiler": _COMPILE,
    "OrtCompileApiFlags": _COMPILE,
    "OrtEpAssignedNode": _PARTS,
    "OrtEpAssignedSubgraph": _PARTS,
    "OrtEpContextData": _CONTEXTS,
    "OrtEpContextDataBuffer": _CONTEXTS,
    "OrtExternalInitializerInfo": _COMPILE,
    "OrtSyncStream": "runs return when their results are there",
    "SessionIOBinding": "InferenceSession.io_binding() makes a binding",
    "SparseTensor": "models take and return dense tensors; scatter the values into zeros",
}
"""The classes of ONNX Runtime that opendml does not have, with the reasons."""


class _Refused(type):
    """The type of classes that serve `isinstance` and annotations, and raise when they are used."""

    _reason: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise Unsupported(f"{cls.__name__}: {cls._reason}")

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unsupported(f"{cls.__name__}.{name}: {cls._reason}")


def __getattr__(name: str) -> Any:
    if name not in REFUSED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    reason = REFUSED[name]
    members = {"_reason": reason, "__doc__": f"Raise Unsupported when it is used: {reason}."}
    return globals().setdefault(name, _Refused(name, (), {**members, "__module__": __name__}))
