"""PyTorch, eager and compiled: its own kernel for each step where it has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.cases import Activation, Case, Layout
from benchmarks.contender import Contender, Mode, NotExpressible
from benchmarks.data import Data
from benchmarks.formulas import EPSILON

Step = Callable[[Any], Any]
Bound = Callable[[Any, Any], Any]


class Torch:
    name = "torch"
    modes: tuple[Mode, ...] = (Mode.BOUND, Mode.NEW, Mode.IN_PLACE)

    def __init__(self, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("highest")
        torch.set_grad_enabled(False)
        self._torch = torch
        self.version = torch.__version__

    def prepare(self, data: Data, mode: Mode) -> Contender:
        x, scale, bias = (self._torch.from_numpy(array) for array in (data.x.array, data.scale, data.bias))
        if mode is Mode.BOUND:
            bound, output = self._bound(data.case), self._torch.from_numpy(data.empty_output().array)
            return Contender(self.name, mode, lambda: bound(x, output), _to_numpy)
        steps = self._steps(data.case, scale, bias, in_place=mode is Mode.IN_PLACE)

        def program(y: Any) -> Any:
            for step in steps:
                y = step(y)
            return y

        if mode is Mode.IN_PLACE:
            y = x.clone()
            return Contender(self.name, mode, lambda: program(y), _to_numpy, lambda: y.copy_(x))
        function = self._ready(program)
        return Contender(self.name, mode, lambda: function(x), _to_numpy)

    def _ready(self, program: Step) -> Step:
        return program

    def _bound(self, case: Case) -> Bound:
        """Return the case as a function that writes into its second argument."""
        if case.axes:
            raise NotExpressible("PyTorch's normalizations make a new tensor")
        if case.input_layout != case.output_layout and case.output_layout is Layout.NHWC:
            return lambda x, out: out.copy_(x)
        first, *others = case.activations
        begun = _bound_activation(self._torch, first)
        inside = [step for _, step in (_activation(self._torch, each) for each in others) if step]
        if len(inside) < len(others):
            raise NotExpressible("PyTorch has no function in place for a step")

        def program(x: Any, out: Any) -> Any:
            y = begun(x, out)
            for step in inside:
                y = step(y)
            return y

        return program

    def _steps(self, case: Case, scale: Any, bias: Any, *, in_place: bool) -> list[Step]:
        torch = self._torch
        if case.input_layout != case.output_layout and case.output_layout is Layout.NHWC:
            if in_place:
                raise NotExpressible("a transposition needs a new tensor")
            return [lambda y: y.contiguous(memory_format=torch.channels_last)]
        functions = [_activation(torch, activation) for activation in case.activations]
        if case.axes:
            if in_place:
                raise NotExpressible("a normalization makes a new tensor")
            normalization = _normalization(torch, case, scale, bias)
            # It makes a new tensor, over which the activation may write.
            return [normalization, *(inside or new for new, inside in functions)]
        if not in_place:
            return [new for new, _ in functions]
        inside = [step for _, step in functions if step]
        if len(inside) < len(functions):
            raise NotExpressible("PyTorch has no function in place for a step")
        return inside


class TorchCompiled(Torch):
    name = "torch.compile"
    modes = (Mode.NEW,)

    def _ready(self, program: Step) -> Step:
        compiled: Step = self._torch.compile(program, dynamic=False)
        return compiled


def _to_numpy(y: Any) -> Any:
    return y.numpy()


def _activation(torch: Any, activation: Activation) -> tuple[Step, Step | None]:
    """The function that returns a new tensor, and the one that writes over its input, if there is one."""
    functional, value = torch.nn.functional, dict(activation.attributes)
    alpha, beta = value.get("alpha", 0.0), value.get("beta", 0.0)

    def both(function: Callable[..., Any], *arguments: float) -> tuple[Step, Step]:
        return lambda x: function(x, *arguments), lambda x: function(x, *arguments, inplace=True)

    table: dict[str, tuple[Step, Step | None]] = {
        "LINEAR": (lambda x: x * alpha + beta, lambda x: x.mul_(alpha).add_(beta)),
        "SIGMOID": (torch.sigmoid, torch.sigmoid_),
        "HARD_SIGMOID": both(functional.hardsigmoid),
        "TANH": (torch.tanh, torch.tanh_),
        "SCALED_TANH": (lambda x: torch.tanh(x * beta) * alpha, lambda x: x.mul_(beta).tanh_().mul_(alpha)),
        "RELU": both(functional.relu),
        "LEAKY_RELU": both(functional.leaky_relu, alpha),
        "THRESHOLDED_RELU": both(functional.threshold, alpha, 0.0),
        "ELU": both(functional.elu, alpha),
        "CELU": both(functional.celu, alpha),
        "SCALED_ELU": both(functional.selu),
        "SOFTPLUS": (lambda x: functional.softplus(x, value["steepness"]), None),
        "PARAMETRIC_SOFTPLUS": (lambda x: functional.softplus(x, beta) * (alpha * beta), None),
        "SOFTSIGN": (functional.softsign, None),
        "IDENTITY": (torch.clone, None),
        "SHRINK": (lambda x: functional.softshrink(x, value["threshold"]), None),
        "GELU": (functional.gelu, None),
    }
    return table[activation.name]


def _bound_activation(torch: Any, activation: Activation) -> Bound:
    """Return the function that writes into its second argument: `out=`, which functions of
    torch.nn.functional have as operators of ATen."""
    aten, value = torch.ops.aten, dict(activation.attributes)
    alpha, beta, gamma = (value.get(name, 0.0) for name in ("alpha", "beta", "gamma"))

    def writing(function: Callable[..., Any], *arguments: float) -> Bound:
        return lambda x, out: function(x, *arguments, out=out)

    table: dict[str, Bound] = {
        "LINEAR": lambda x, out: torch.mul(x, alpha, out=out).add_(beta),
        "SIGMOID": writing(torch.sigmoid),
        "HARD_SIGMOID": writing(aten.hardsigmoid.out),
        "TANH": writing(torch.tanh),
        "SCALED_TANH": lambda x, out: torch.mul(x, beta, out=out).tanh_().mul_(alpha),
        "RELU": writing(aten.relu.out),
        "LEAKY_RELU": writing(aten.leaky_relu.out, alpha),
        "THRESHOLDED_RELU": writing(aten.threshold.out, alpha, 0.0),
        "ELU": writing(aten.elu.out, alpha),
        "CELU": writing(aten.elu.out, alpha, 1.0, 1.0 / alpha) if alpha else writing(aten.elu.out),
        "SCALED_ELU": writing(aten.elu.out, alpha, gamma),
        "SOFTPLUS": writing(aten.softplus.out, value.get("steepness", 1.0)),
        "PARAMETRIC_SOFTPLUS": lambda x, out: aten.softplus.out(x, beta, out=out).mul_(alpha * beta),
        "SOFTSIGN": lambda x, out: torch.div(x, torch.abs(x, out=out).add_(1.0), out=out),
        "IDENTITY": lambda x, out: out.copy_(x),
        "SHRINK": writing(aten.softshrink.out, value.get("threshold", 0.0)),
        "GELU": writing(aten.gelu.out),
    }
    return table[activation.name]


def _normalization(torch: Any, case: Case, scale: Any, bias: Any) -> Step:
    """The layer that normalizes over these axes, or the formula where there is none."""
    functional, flat_scale, flat_bias = torch.nn.functional, scale.flatten(), bias.flatten()
    layers: dict[tuple[int, ...], Step] = {
        (2, 3): lambda x: functional.instance_norm(x, weight=flat_scale, bias=flat_bias, eps=EPSILON),
        (1, 2, 3): lambda x: functional.group_norm(x, 1, flat_scale, flat_bias, EPSILON),
        (0, 2, 3): lambda x: functional.batch_norm(x, None, None, flat_scale, flat_bias, True, 0.1, EPSILON),
        (3,): lambda x: functional.layer_norm(x, (case.sizes[3],), flat_scale, flat_bias, EPSILON),
    }

    def formula(x: Any) -> Any:
        variance, mean = torch.var_mean(x, case.axes, correction=0, keepdim=True)
        return (x - mean) * torch.rsqrt(variance + EPSILON) * scale + bias

    return layers.get(case.axes, formula)
