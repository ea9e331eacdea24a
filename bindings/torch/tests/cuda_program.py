"""A program for "cuda", in half precision and channels_last, as people write them: run by launcher_test.py."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.cuda.manual_seed_all(3)
steps = int(sys.argv[1])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding="same", bias=False)
        self.norm = nn.BatchNorm2d(8, eps=1e-12, momentum=0.4)
        self.norm.weight.requires_grad = False
        self.head = nn.Linear(8, 10, bias=False)

    def forward(self, x):
        x = F.max_pool2d(F.gelu(self.norm(self.conv(x))), 2)
        return self.head(x.amax(dim=(2, 3))) / 9


torch.manual_seed(3)
images = torch.randn(64, 3, 16, 16, device="cuda").half()
labels = F.one_hot(torch.randint(10, (64,), device=torch.device("cuda")), 10).half()
net = Net().to(device).to(memory_format=torch.channels_last).half()
net.conv.weight.data = torch.cat((net.conv.weight.data[:4], -net.conv.weight.data[:4]))
nn.init.dirac_(net.conv.weight.data[4:])
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.05, momentum=0.85, nesterov=True, foreach=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=steps + 1, cycle_momentum=False)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
for step in range(steps):
    order = torch.randperm(len(images), device="cuda")[:32]
    x = images.index_select(0, order)
    x = torch.where(torch.rand_like(x[:, 0, 0, 0].view(-1, 1, 1, 1)) < 0.5, torch.flip(x, [-1]), x).to(memory_format=torch.channels_last)
    losses = nn.CrossEntropyLoss(label_smoothing=0.2, reduction="none")(net(x), labels.index_select(0, order))
    loss = losses.mul(0.5).sum().div(16)
    loss.backward()
    optimizer.step()
    schedule.step()
    optimizer.zero_grad(set_to_none=True)
end.record()
torch.cuda.synchronize()
print("device", x.cuda().device, x.is_cuda, "ms", start.elapsed_time(end) > 0, "finite", bool(torch.isfinite(loss)))
