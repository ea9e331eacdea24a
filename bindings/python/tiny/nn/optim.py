"""Optimisers by tinygrad's names and arguments, over those of the library (tiny_optimizer_create)."""

import collections.abc

from .. import _tape
from .._creation import FLOATS, check_device
from .._operands import want_list, want_numbers
from .._reading import Reading
from ..methods import Optimizer as _Native
from ..methods import OptimizerKind
from ..native import Tensor

_NS = (3.4445, -4.775, 2.0315)  # of Jordan et al. 2024


def _once(tensors):
    return list({id(tensor): tensor for tensor in tensors}.values())


class Optimizer:
    """Parameters, and what a step makes of them by their `grad`.  Tensors whose requires_grad is False, and those that
    are no floats, are `buffers`, which steps compute and leave alone.  `lr` is a tensor that can be assigned to any time.

    An optimiser of one's own defines _step(params, grads), which gives what is subtracted from each parameter, and a list
    of the tensors that it keeps and assigned to.

    Of parameters over several devices it is one for each device (tiny._sharded.OverDevices)."""

    def __new__(cls, params=(), *arguments, **keywords):
        if isinstance(params, (list, tuple)) and any(hasattr(one, "_parts") for one in params):
            from .._sharded import OverDevices
            return OverDevices(cls, params, arguments, keywords)
        return super().__new__(cls)

    def __init__(self, params, lr=0.001, device=None, fused=False) -> None:
        check_device(device)
        want_list("an optimiser", "a list of tensors", params, collections.abc.Iterable)
        want_numbers("an optimiser", lr=lr)
        params = _once(params)
        if not all(isinstance(one, Tensor) for one in params):
            raise TypeError("an optimiser's parameters are tensors: nn.state.get_parameters(model) lists a model's")
        if lr < 0:
            raise ValueError(f"an optimiser's learning rate is 0 at least, not {lr}")
        for one in params:
            if one.requires_grad is None and one.dtype in FLOATS:
                one.requires_grad = True
        self.params = [one for one in params if one.requires_grad]
        self.buffers = [one for one in params if not one.requires_grad]
        if not self.params:
            raise ValueError("an optimiser wants a parameter at least, a float tensor that may require gradients")
        self.device = device or self.params[0].device
        self.fused = fused  # kernels are joined in any case
        self._set_rate(self._first_rate(lr))

    def _first_rate(self, lr):
        return Tensor(lr, dtype="float32").contiguous().realize()

    def _set_rate(self, scalar):
        """While programs of tinygrad's run it has an axis, as there."""
        self._rate = scalar.reshape([1]) if Reading.tinygrad else scalar

    @property
    def lr(self) -> Tensor:
        """The learning rate: a scalar, of shape [1] in programs of tinygrad's."""
        return self._rate

    @lr.setter
    def lr(self, value):
        if value is not self._rate:
            self._rate.assign(value)

    def zero_grad(self) -> None:
        """No parameter has a gradient any more."""
        for one in self.params:
            one.grad = None

    def _gradients(self):
        if not Tensor.training:
            raise RuntimeError("step(): Tensor.training is false: dropout and batch norm did not train; "
                               "`with Tensor.train():` around the step, or Tensor.training = True")
        found = [one.grad for one in self.params]
        if all(one is None for one in found):
            raise RuntimeError("step(): no parameter has a gradient: call backward() on a loss that was made of them")
        return found

    def schedule_step(self) -> list[Tensor]:
        """One step, not computed: the tensors to be realised for it.  Parameters without a gradient stay."""
        pairs = [(one, grad) for one, grad in zip(self.params, self._gradients()) if grad is not None]
        updates, kept = self._step([one for one, _ in pairs], [grad for _, grad in pairs])
        for (one, _), update in zip(pairs, updates):
            one.assign(one.detach() - update)
        return _once([*_tape.waiting(), *kept, *self.params, *self.buffers])

    def _step(self, params, grads):
        raise NotImplementedError(f"{type(self).__name__} has no _step(params, grads)")

    def _new_optim_param(self) -> list[Tensor]:
        """Zeros, float32, in the shape of each parameter: what an optimiser of one's own keeps."""
        return [Tensor.zeros(*one.shape, dtype="float32").contiguous().realize() for one in self.params]

    def step(self) -> None:
        """One step."""
        _tape.realize(self.schedule_step())


class _Library(Optimizer):
    """One whose steps are the library's.  Settings hold from the first step on."""

    def __init__(self, params, lr, kind, settings, device=None, fused=False) -> None:
        self._kind, self._settings = kind, settings
        super().__init__(params, lr, device, fused)
        self._set_all()

    def _set_all(self):
        for name, value in self._settings.items():
            self._native.set(0, name, value)

    def _first_rate(self, lr):
        self._native = _Native.create(self.params[0].context, self._kind)
        # Muon's are matrices, and a vector is a row: steps of those that have more rows than columns are longer.
        matrices = self._kind == OptimizerKind.MUON
        self._views = [one.realize().reshape([1, -1]) if matrices and one.rank < 2 else one for one in self.params]
        self._native.add(self._views)
        self._native.set(0, "lr", lr)
        return self._native.rate(0)

    def __getstate__(self):
        """For pickle and copy.deepcopy: the parameters, the settings and what is kept of the parameters."""
        made_again = ("_native", "_views", "_rate", "_groups")
        return ({name: value for name, value in self.__dict__.items() if name not in made_again}, self.lr.item(),
                self._states())

    def __setstate__(self, state):
        held, lr, kept = state
        self.__dict__.update(held)
        self._set_rate(self._first_rate(lr))
        self._set_all()
        if any(name.startswith("missed.") for name in kept):  # counts of steps without a gradient, which the first one makes
            self._native.step([None] * len(self.params))
        for name, own in self._states().items():
            own.assign(kept[name] if name in kept else own.zeros_like()).realize()

    def _state_parts(self):
        """For nn.state.get_state_dict: what a file has to have to go on from."""
        return {"params": self.params, "buffers": self.buffers, "lr": self._rate, **self._states()}

    def state(self, name) -> list[Tensor]:
        """What is kept of each parameter under a name, such as "exp_avg"."""
        held = self._states()
        return [held[f"{name}.{i}"] for i in range(len(self.params)) if f"{name}.{i}" in held]

    def _states(self):
        native = self._native
        return {native.state_name(i): native.state(i) for i in range(native.state_count())}

    def schedule_step(self) -> list[Tensor]:
        found = self._gradients()
        self._native.step([one if one is None else one.reshape(view.shape) for one, view in zip(found, self._views)])
        _tape.written(*self.params)
        return _once([*_tape.waiting(), *self.params, *self.buffers, *self._states().values()])


class OptimizerGroup(Optimizer):
    """Several optimisers as one.  The group of the same ones is one object, so that a program that TinyJit captured
    with it knows it again where a step makes it anew."""

    def __new__(cls, *optimizers):
        for one in optimizers:
            want_list("OptimizerGroup", "an optimiser", one, Optimizer)
        made = object.__new__(cls)
        known = optimizers[0].__dict__.setdefault("_groups", {}) if optimizers else {}
        return known.setdefault((cls, *map(id, optimizers)), made)

    def __init__(self, *optimizers) -> None:
        if "optimizers" in self.__dict__:
            return
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


def _positive(call, **settings):
    for name, value in settings.items():
        if value < 0:
            raise ValueError(f"{call}: {name} is 0 at least, not {value}")


class LARS(_Library):
    """SGD with a rate for each parameter (You et al. 2017).  Without a trust coefficient (tcoef=0) it is SGD, and with
    `ns_coefficients` and `pre_wd` false Muon."""

    def __init__(self, params, lr=0.001, momentum=0.9, weight_decay=1e-4, ns_steps=0, ns_coefficients=None,
                 nesterov=False, classic=True, pre_wd=True, tcoef=0.001, device=None, fused=False) -> None:
        _positive(type(self).__name__, momentum=momentum, weight_decay=weight_decay)
        settings = {"momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov}
        if ns_coefficients is None and pre_wd:
            kind = OptimizerKind.LARS if tcoef else OptimizerKind.SGD
            settings.update({"classic": classic}, **({"trust": tcoef} if tcoef else {}))
        elif ns_coefficients is not None and not pre_wd and not classic and not tcoef:
            kind, coefficients = OptimizerKind.MUON, zip(("ns_a", "ns_b", "ns_c"), ns_coefficients)
            settings.update({"ns_steps": ns_steps, **dict(coefficients)})
        else:
            raise ValueError("LARS: orthogonal steps (ns_coefficients) go with pre_wd=False, classic=False and tcoef=0, "
                             "and those with them: that is Muon")
        self.momentum, self.wd, self.nesterov = momentum, weight_decay, nesterov
        super().__init__(params, lr, kind, settings, device, fused)

    @property
    def b(self) -> list[Tensor]:
        """The momentum of each parameter."""
        return self.state("momentum_buffer")


class LAMB(_Library):
    """AdamW with a rate for each parameter (You et al. 2019); with `adam` without that."""

    def __init__(self, params, lr=0.001, b1=0.9, b2=0.999, eps=1e-6, weight_decay=0.0, adam=False, device=None,
                 fused=False) -> None:
        _positive(type(self).__name__, weight_decay=weight_decay)
        kind = OptimizerKind.ADAMW if adam and weight_decay else OptimizerKind.ADAM if adam else OptimizerKind.LAMB
        settings = {"beta1": b1, "beta2": b2, "eps": eps, "weight_decay": weight_decay}
        self.b1, self.b2, self.eps, self.wd, self.adam = b1, b2, eps, weight_decay, adam
        super().__init__(params, lr, kind, settings, device, fused)

    @property
    def m(self) -> list[Tensor]:
        """The mean of each parameter's gradients."""
        return self.state("exp_avg")

    @property
    def v(self) -> list[Tensor]:
        """The mean of their squares."""
        return self.state("exp_avg_sq")

    def _power(self, base):
        return (self._states()["step"].cast("float32") * 0 + base).pow(self._states()["step"].cast("float32")).reshape([1])

    @property
    def b1_t(self) -> Tensor:
        """b1 to the power of the steps that were made, of shape [1]."""
        return self._power(self.b1)

    @property
    def b2_t(self) -> Tensor:
        """b2 to the power of the steps that were made, of shape [1]."""
        return self._power(self.b2)


def SGD(params, lr=0.001, momentum=0.0, weight_decay=0.0, nesterov=False, classic=False, device=None,
        fused=False) -> Optimizer:
    """Stochastic gradient descent, as torch.optim.SGD; `classic`: the momentum is that of steps, not of gradients."""
    return LARS(params, lr, momentum, weight_decay, 0, None, nesterov, classic, True, 0.0, device, fused)


def Muon(params, lr=0.001, momentum=0.95, weight_decay=0.1, ns_steps=5, ns_coefficients=_NS, nesterov=True, device=None,
         fused=False) -> Optimizer:
    """Steps of orthonormal matrices (Jordan et al. 2024), as torch.optim.Muon; a vector is a matrix of one row."""
    return LARS(params, lr, momentum, weight_decay, ns_steps, ns_coefficients, nesterov, False, False, 0.0, device, fused)


def Adam(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-8, device=None, fused=False) -> Optimizer:
    """Adam, as torch.optim.Adam."""
    return LAMB(params, lr, b1, b2, eps, 0.0, True, device, fused)


def AdamW(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.01, device=None, fused=False) -> Optimizer:
    """Adam with weight decay of its own, as torch.optim.AdamW."""
    return LAMB(params, lr, b1, b2, eps, weight_decay, True, device, fused)


def RMSprop(params, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, device=None,
            fused=False) -> Optimizer:
    """Steps by the root of the mean square of gradients (Hinton 2012), as torch.optim.RMSprop."""
    _positive("RMSprop", alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum)
    settings = {"alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum, "centered": centered}
    return _Library(params, lr, OptimizerKind.RMSPROP, settings, device, fused)


def Adagrad(params, lr=0.01, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10, device=None,
            fused=False) -> Optimizer:
    """Steps by the root of the sum of squares of all gradients (Duchi et al. 2011), as torch.optim.Adagrad."""
    settings = {"lr_decay": lr_decay, "weight_decay": weight_decay, "initial_accumulator_value": initial_accumulator_value,
                "eps": eps}
    _positive("Adagrad", **settings)
    return _Library(params, lr, OptimizerKind.ADAGRAD, settings, device, fused)
