"""Learning rates that change from epoch to epoch, or from step to step, by the definitions of torch.optim.lr_scheduler.

    schedule = nn.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, div_factor=25, final_div_factor=1e4, total_steps=900,
                                          pct_start=0.3)
    ..
    optimizer.step()
    schedule.step()         # or within TinyJit: realize(*optimizer.schedule_step(), *schedule.schedule_step())

Rates are expressions of a counter on the device, so that a program of TinyJit's counts on by itself.
"""

import math

from .. import _tape
from ..native import Tensor
from .optim import Optimizer


class LR_Scheduler:
    """Sets `optimizer.lr` to get_lr(), which is made of `epoch_counter`, an int32 of shape [1]: steps so far."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.epoch_counter = Tensor([0], dtype="int32").realize()
        self.epoch_counter.requires_grad = False

    def get_lr(self) -> Tensor:
        """The rate after the steps that were counted."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr()")

    def schedule_step(self) -> list[Tensor]:
        """One step, not computed: the tensors to be realised for it."""
        self.epoch_counter.assign(self.epoch_counter + 1)
        self._set(self.get_lr())
        return [self.epoch_counter, self.optimizer.lr]

    def step(self) -> None:
        """One step."""
        _tape.realize(self.schedule_step())

    def _set(self, rate):
        self.optimizer.lr.assign(rate.cast("float32").reshape(self.optimizer.lr.shape))

    def _count(self):
        return self.epoch_counter.cast("float32")


class LRSchedulerGroup:
    """Several schedulers as one."""

    def __init__(self, *schedulers: LR_Scheduler) -> None:
        self.schedulers = schedulers

    def schedule_step(self) -> list[Tensor]:
        """One step of each, not computed."""
        return [one for scheduler in self.schedulers for one in scheduler.schedule_step()]

    def step(self) -> None:
        """One step of each."""
        _tape.realize(self.schedule_step())


class MultiStepLR(LR_Scheduler):
    """The rate times `gamma` at each of the milestones."""

    def __init__(self, optimizer: Optimizer, milestones: list[int], gamma=0.1) -> None:
        super().__init__(optimizer)
        self.milestones, self.gamma = milestones, gamma

    def get_lr(self) -> Tensor:
        made, rate = 1.0, self.optimizer.lr
        for milestone in self.milestones:
            made = self.epoch_counter.eq(milestone).where(self.gamma, 1.0) * made
        return rate * (made if rate.rank or not isinstance(made, Tensor) else made.reshape([]))


class ReduceLROnPlateau(LR_Scheduler):
    """The rate times `factor` after more than `patience` steps whose metric was no better than the best one, by a share
    ("rel") or an amount ("abs") of `threshold`."""

    def __init__(self, optimizer: Optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel") -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: mode {mode!r} is min or max, threshold_mode {threshold_mode!r} rel or abs")
        super().__init__(optimizer)
        self.mode, self.factor, self.patience, self.threshold_mode = mode, factor, patience, threshold_mode
        self.threshold = -threshold if mode == "min" else threshold
        self.best, self.bad_epoch = math.inf if mode == "min" else -math.inf, 0

    def is_better(self, current: float) -> bool:
        """Whether a metric is better than the best one by the threshold."""
        by = self.best * self.threshold if self.threshold_mode == "rel" else self.threshold
        least = self.best if math.isinf(self.best) else self.best + by
        return current < least if self.mode == "min" else current > least

    def step(self, current: float) -> None:
        """One step, after which the metric is `current`."""
        self.epoch_counter.assign(self.epoch_counter + 1)
        if self.is_better(current):
            self.best, self.bad_epoch = current, 0
        else:
            self.bad_epoch += 1
        if self.bad_epoch > self.patience:
            self._set(self.optimizer.lr * self.factor)
            self.bad_epoch = 0
        _tape.realize([self.epoch_counter, self.optimizer.lr])


class CosineAnnealingLR(LR_Scheduler):
    """Half a cosine from the rate that the optimiser has down to `eta_min` at T_max steps."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min=0) -> None:
        super().__init__(optimizer)
        self.T_max, self.eta_min = T_max, eta_min
        self.eta_max = optimizer.lr.reshape([1]).tolist()[0]

    def get_lr(self) -> Tensor:
        return ((self._count() * (math.pi / self.T_max)).cos() + 1) * (0.5 * (self.eta_max - self.eta_min)) + self.eta_min


class OneCycleLR(LR_Scheduler):
    """From max_lr / div_factor in a straight line up to max_lr within a share `pct_start` of the steps, and in another
    down to max_lr / div_factor / final_div_factor at the last one."""

    def __init__(self, optimizer: Optimizer, max_lr: float, div_factor: float, final_div_factor: float, total_steps: int,
                 pct_start: float, anneal_strategy="linear", cycle_momentum=False) -> None:
        if anneal_strategy != "linear" or cycle_momentum:
            raise ValueError("OneCycleLR: anneal_strategy is linear, and the momentum stays as it is")
        super().__init__(optimizer)
        self.initial_lr, self.max_lr = max_lr / div_factor, max_lr
        self.min_lr = self.initial_lr / final_div_factor
        self.total_steps, self.pct_start = total_steps, pct_start
        self._set(self.get_lr())
        _tape.realize([self.optimizer.lr])

    def get_lr(self) -> Tensor:
        rise = self.total_steps * self.pct_start
        fall = self.total_steps - rise
        count = self._count()
        up = count * ((self.max_lr - self.initial_lr) / rise) + self.initial_lr if rise else count * 0 + self.max_lr
        down = (count - rise) * ((self.min_lr - self.max_lr) / fall) + self.max_lr if fall else count * 0 + self.min_lr
        return (count < rise).where(up, down)
