"""A program as a user types it: typing_test.py has it checked by mypy --strict, and runs it."""

import os
import sys
from collections.abc import Callable

import tiny
from tiny import Device, Tensor, TinyJit, Variable, dtypes, nn


class Model:
    def __init__(self) -> None:
        self.layers: list[Callable[[Tensor], Tensor]] = [
            nn.Conv2d(1, 4, 3), Tensor.relu, nn.BatchNorm(4), Tensor.max_pool2d,
            lambda x: x.flatten(1), nn.Linear(36, 3)]

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self.layers)


def train(model: Model) -> list[float]:
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-3)
    schedule = nn.lr_scheduler.MultiStepLR(optimizer, [2])

    @TinyJit
    @Tensor.train()
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        optimizer.step()
        return loss

    x, y = Tensor.rand(8, 1, 8, 8), Tensor.randint(8, high=3)
    losses = [step(x, y).item() for _ in range(3)]
    schedule.step()
    return losses


def values() -> list[Tensor]:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    rows: Tensor = (x @ x.T + 2 * x - x / 2).relu().sum(axis=1)
    mask: Tensor = (x > 1) & (x != 2)
    greatest, places = x.topk(1, dim=1)
    shape: tuple[int | tiny.Dim, ...] = x.shape
    i = Variable("i", 1, 10).bind(2)
    low, high = x.aminmax()
    parts: tuple[Tensor, ...] = x.unbind(0)
    written = Tensor.ones(2, 2).contiguous().zero_().add_(1).mul_(2)
    return [rows, mask.where(x, 0), greatest, places, x[0] + x[:, 1] ** 2, x[:, :i], low, high, parts[0], written, x.norm(),
            x.to(dtypes.float16), x.reshape(shape)]


def main(folder: str) -> None:
    model = Model()
    losses = train(model)
    path = os.path.join(folder, "net.safetensors")
    nn.state.safe_save(nn.state.get_state_dict(model), path)
    nn.state.load_state_dict(model, nn.state.safe_load(path))
    with Tensor.no_grad():
        print(Device.DEFAULT, tiny.float32.itemsize, tiny.float32.name, losses[-1] < losses[0], *(x.mean().item() for x in values()))
    try:
        Tensor([1]).reshape(7)
    except tiny.Error as error:
        print(error.status, error.name)


if __name__ == "__main__":
    main(sys.argv[1])
