"""A program for "cuda" with what programs that learn CIFAR-10 use: run by launcher_test.py, as it is."""

import copy
import os

import torch
import torchvision
from torch import nn
from torch.nn import functional as F
from torchvision import transforms

batchsize = 1024

if not os.path.exists("data.pt"):
    transform = transforms.Compose([transforms.ToTensor()])
    data = {}
    for train in (True, False):
        pictures = torchvision.datasets.CIFAR10("cifar10/", download=True, train=train, transform=transform)
        loader = torch.utils.data.DataLoader(pictures, batch_size=len(pictures), shuffle=train, drop_last=True, num_workers=1)
        images, targets = [item.to(device="cuda", non_blocking=True) for item in next(iter(loader))]
        if train:
            std, mean = torch.std_mean(images, dim=(0, 2, 3))
        images = ((images - mean.view(1, -1, 1, 1)) / std.view(1, -1, 1, 1)).half().requires_grad_(False)
        data["train" if train else "eval"] = {"images": images, "targets": F.one_hot(targets, 10).half()}
    torch.save(data, "data.pt")
else:
    data = torch.load("data.pt")
data["train"]["images"] = F.pad(data["train"]["images"], (2,) * 4, "reflect")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.whiten = nn.Conv2d(3, 12, 2, bias=False)
        self.conv = nn.Conv2d(24, 16, 3, padding="same", bias=False)
        self.norm = nn.BatchNorm2d(16, eps=1e-12, momentum=0.4)
        self.linear = nn.Linear(16, 10, bias=False)

    def forward(self, x):
        if not self.training:
            x = torch.cat((x, torch.flip(x, (-1,))))
        x = F.gelu(self.norm(F.max_pool2d(self.conv(F.gelu(self.whiten(x))), 2)))
        x = torch.amax(x, dim=(2, 3)) @ (self.linear.weight / 9).T
        if not self.training:
            first, second = x.split(x.shape[0] // 2, dim=0)
            x = 0.5 * first + 0.5 * second
        return x


def whiten(conv, images):
    patches = images.unfold(2, 2, 1).unfold(3, 2, 1).transpose(1, 3).reshape(-1, 3, 2, 2).to(torch.float32)
    values, vectors = torch.linalg.eigh(torch.cov(patches.view(len(patches), 12).t()), UPLO="U")
    vectors = vectors.t().reshape(12, 3, 2, 2).flip(0) / torch.sqrt(values.flip(0).view(-1, 1, 1, 1) + 1e-2)
    conv.weight.data = torch.cat((vectors, -vectors)).to(conv.weight.dtype)
    conv.weight.requires_grad = False


def crop(images, size):
    y, x = (torch.empty(len(images), dtype=torch.long, device=images.device).random_(size // 2 - 1, images.shape[axis] - size // 2 - 1)
            for axis in (-2, -1))
    rows = torch.arange(images.shape[-2], device=images.device).view(1, 1, -1, 1) - y.view(-1, 1, 1, 1)
    columns = torch.arange(images.shape[-1], device=images.device).view(1, 1, 1, -1) - x.view(-1, 1, 1, 1)
    mask = (rows >= 1 - size // 2) * (rows <= size // 2) * (columns >= 1 - size // 2) * (columns <= size // 2)
    return torch.masked_select(images, mask).view(*images.shape[:2], size, size)


net = Net().to("cuda").to(memory_format=torch.channels_last).train().half()
with torch.no_grad():
    whiten(net.whiten, data["train"]["images"][:100, :, 2:-2, 2:-2])
    nn.init.dirac_(net.conv.weight)
generator = torch.Generator(device="cuda").manual_seed(1)
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.01, momentum=0.85, nesterov=True, foreach=True)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
torch.cuda.synchronize()
start.record()
for step in range(1000):
    order = torch.randperm(len(data["train"]["images"]), device="cuda", generator=generator)[:batchsize]
    images = crop(data["train"]["images"], 32).to(memory_format=torch.channels_last).index_select(0, order)
    targets = data["train"]["targets"].index_select(0, order)
    average = copy.deepcopy(net).eval().requires_grad_(False)
    loss = nn.CrossEntropyLoss(label_smoothing=0.2, reduction="none")(net(images), targets).mul(1 / 32).sum().mul(32)
    if step == 0:
        print("batch", len(images), images.cuda().device, images.is_cuda, isinstance(generator, torch.Generator), flush=True)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    with torch.no_grad():
        for kept, new in zip(average.state_dict().values(), net.state_dict().values()):
            if new.dtype == torch.half:
                kept.mul_(0.9).add_(new.detach().mul(0.1))
                new.copy_(kept)
        average(data["eval"]["images"])
end.record()
