"""Optimisers by tinygrad's names and arguments, over those of the library (tiny_optimizer_create)."""

from .. import _tape
from .._creation import FLOATS
from ..methods import Optimizer as _Native
from ..methods import OptimizerKind
from ..native import Tensor


def _once(tensors):
    return list({id(tensor): tensor for tensor in tensors}.values())


class Optimizer:
    """Parameters, and what a step makes of them by their `grad`.  Tensors whose requires_grad is False, and those that
    are no floats, are `buffers`, which steps compute and leave alone.  Settings hold from the first step on; `lr` is a
    tensor that can be assigned to any time."""

    def __init__(self, params, lr, kind, settings, fused=False):
        params = _once(params)
        if not all(isinstance(one, Tensor) for one in params):
            raise TypeError("an optimiser's parameters are tensors: nn.state.get_parameters(model) lists a model's")
        for one in params:
            if one.requires_grad is None and one.dtype in FLOATS:
                one.requires_grad = True
        self.params = [one for one in params if one.requires_grad]
        self.buffers = [one for one in params if not one.requires_grad]
        if not self.params:
            raise ValueError("an optimiser wants a parameter at least, a float tensor that may require gradients")
        self.fused = fused  # kernels are joined in any case
        self._native = _Native.create(self.params[0].context, kind)
        # Muon's are matrices, and a vector is a column.
        column = kind == OptimizerKind.MUON
        self._views = [one.realize().reshape([-1, 1]) if column and one.rank < 2 else one for one in self.params]
        self._native.add(self._views)
        for name, value in {"lr": lr, **settings}.items():
            self._native.set(0, name, value)
        self._rate = self._native.rate(0)

    @property
    def lr(self) -> Tensor:
        """The learning rate, a scalar."""
        return self._rate

    @lr.setter
    def lr(self, value):
        self._rate.assign(value)

    def state(self, name) -> list[Tensor]:
        """What is kept of each parameter under a name, such as "exp_avg"."""
        held = self._states()
        return [held[f"{name}.{i}"] for i in range(len(self.params)) if f"{name}.{i}" in held]

    def _states(self):
        native = self._native
        return {native.state_name(i): native.state(i) for i in range(native.state_count())}

    def zero_grad(self) -> None:
        """No parameter has a gradient any more."""
        for one in self.params:
            one.grad = None

    def schedule_step(self) -> list[Tensor]:
        """One step, not computed: the tensors to be realised for it.  Parameters without a gradient stay."""
        if not Tensor.training:
            raise RuntimeError("step(): Tensor.training is false: dropout and batch norm did not train; "
                               "`with Tensor.train():` around the step, or Tensor.training = True")
        found = [one.grad for one in self.params]
        if all(one is None for one in found):
            raise RuntimeError("step(): no parameter has a gradient: call backward() on a loss that was made of them")
        self._native.step([one if one is None else one.reshape(view.shape) for one, view in zip(found, self._views)])
        _tape.written(*self.params)
        return _once([*self.params, *self.buffers, *self._states().values(), *_tape.waiting()])

    def step(self) -> None:
        """One step."""
        _tape.realize(self.schedule_step())


class _Momentum(Optimizer):
    @property
    def b(self) -> list[Tensor]:
        """The momentum of each parameter."""
        return self.state("momentum_buffer")


class _Moments(Optimizer):
    @property
    def m(self) -> list[Tensor]:
        """The mean of each parameter's gradients."""
        return self.state("exp_avg")

    @property
    def v(self) -> list[Tensor]:
        """The mean of their squares."""
        return self.state("exp_avg_sq")


class OptimizerGroup(Optimizer):
    """Several optimisers as one."""

    def __init__(self, *optimizers):
        self.optimizers = optimizers
        self.params = [one for optimizer in optimizers for one in optimizer.params]
        self.buffers = [one for optimizer in optimizers for one in optimizer.buffers]

    def __getitem__(self, i) -> Optimizer:
        return self.optimizers[i]

    def zero_grad(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def schedule_step(self) -> list[Tensor]:
        return _once(one for optimizer in self.optimizers for one in optimizer.schedule_step())


def SGD(params, lr=0.001, momentum=0.0, weight_decay=0.0, nesterov=False, classic=False, fused=False) -> Optimizer:
    """Stochastic gradient descent, as torch.optim.SGD."""
    if classic and momentum:
        raise ValueError("SGD: classic=True, momentum of steps rather than of gradients, is LARS's alone here")
    return _Momentum(params, lr, OptimizerKind.SGD, {"momentum": momentum, "weight_decay": weight_decay,
                                                     "nesterov": nesterov}, fused)


def LARS(params, lr=0.001, momentum=0.9, weight_decay=1e-4, nesterov=False, classic=True, tcoef=0.001,
         fused=False) -> Optimizer:
    """SGD with a rate for each parameter (You et al. 2017)."""
    if not classic:
        raise ValueError("LARS: classic=False, momentum of gradients rather than of steps, is SGD's alone here")
    return _Momentum(params, lr, OptimizerKind.LARS, {"momentum": momentum, "weight_decay": weight_decay,
                                                      "nesterov": nesterov, "trust": tcoef}, fused)


def Muon(params, lr=0.001, momentum=0.95, weight_decay=0.1, ns_steps=5, ns_coefficients=(3.4445, -4.775, 2.0315),
         nesterov=True, fused=False) -> Optimizer:
    """Steps of orthonormal matrices (Jordan et al. 2024), as torch.optim.Muon; a vector is a matrix of one column."""
    if tuple(ns_coefficients) != (3.4445, -4.775, 2.0315):
        raise ValueError(f"Muon: ns_coefficients {ns_coefficients}: known are (3.4445, -4.775, 2.0315)")
    return _Momentum(params, lr, OptimizerKind.MUON, {"momentum": momentum, "weight_decay": weight_decay,
                                                      "nesterov": nesterov, "ns_steps": ns_steps}, fused)


def Adam(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-8, fused=False) -> Optimizer:
    """Adam, as torch.optim.Adam."""
    return _Moments(params, lr, OptimizerKind.ADAM, {"beta1": b1, "beta2": b2, "eps": eps}, fused)


def AdamW(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.01, fused=False) -> Optimizer:
    """Adam with weight decay of its own, as torch.optim.AdamW."""
    return _Moments(params, lr, OptimizerKind.ADAMW, {"beta1": b1, "beta2": b2, "eps": eps,
                                                      "weight_decay": weight_decay}, fused)


def LAMB(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-6, weight_decay=0.0, adam=False, fused=False) -> Optimizer:
    """AdamW with a rate for each parameter (You et al. 2019); with `adam` without that."""
    kind = OptimizerKind.ADAMW if adam else OptimizerKind.LAMB
    return _Moments(params, lr, kind, {"beta1": b1, "beta2": b2, "eps": eps, "weight_decay": weight_decay}, fused)
