"""Networks on device "tiny": forward, gradients and training steps are the CPU's, without falling back to it."""

import copy
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import tiny.torch as tiny


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.down = None
        if stride != 1 or inputs != outputs:
            self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.down is None else self.down(x)))


class ResNet18(nn.Module):
    """torchvision's, with fewer channels: `width` is 64 there."""

    def __init__(self, width=8, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                                  nn.MaxPool2d(3, 2, 1))
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        self.layers = nn.Sequential(*[block for i in range(4) for block in
                                      (Block(sizes[i], sizes[i + 1], 1 + (i > 0)), Block(sizes[i + 1], sizes[i + 1], 1))])
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, classes))

    def forward(self, x):
        return self.head(self.layers(self.stem(x)))


class Decoder(nn.Module):
    """Four layers of attention, causal, with embeddings and a head that shares their weight."""

    def __init__(self, words=50, width=32):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(16, width) * 0.1)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, activation="gelu", norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, norm=nn.LayerNorm(width), enable_nested_tensor=False)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        y = self.layers(self.words(x) + self.places[:x.shape[1]], mask=mask, is_causal=True)
        return y @ self.words.weight.t()


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cells = kind(6, 8, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.cells(x)[0][:, -1])


class Mnist(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.BatchNorm2d(8), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(),
                         nn.BatchNorm2d(16), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 25, 10))


def digits(count):
    """Pictures of ten kinds of bars, with noise: learned in a few steps."""
    labels = torch.arange(count) % 10
    x = torch.randn(count, 1, 28, 28) * 0.3
    for i, label in enumerate(labels.tolist()):
        x[i, 0, 2 * label + 2:2 * label + 6, 4:24] += 1.5
    return x, labels


class Equal(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        tiny.clear_fallbacks()

    def tearDown(self):
        self.assertEqual(tiny.fallbacks(), {})

    def close(self, got, want, tolerance=1e-3):
        torch.testing.assert_close(got.detach().cpu(), want.detach(), rtol=tolerance, atol=tolerance)

    def compare(self, net, x, target):
        ours = copy.deepcopy(net).to("tiny")
        found = []
        for model, device in ((net, "cpu"), (ours, "tiny")):
            y = model(x.to(device))
            loss = F.cross_entropy(y.flatten(0, -2), target.to(device).flatten())
            loss.backward()
            found.append((y, loss))
        self.close(found[1][0], found[0][0])
        self.close(found[1][1], found[0][1])
        for (name, p), q in zip(net.named_parameters(), ours.parameters()):
            with self.subTest(name=name):
                self.close(q.grad, p.grad)
        for p, q in zip(net.buffers(), ours.buffers()):
            self.close(q, p)

    def test_resnet(self):
        self.compare(ResNet18(), torch.randn(4, 3, 64, 64), torch.randint(10, (4,)))

    def test_resnet_for_inference(self):
        net = ResNet18().eval()
        x = torch.randn(2, 3, 64, 64)
        with torch.no_grad():
            want = net(x)
            self.close(net.to("tiny")(x.to("tiny")), want)

    def test_resnet_with_channels_last(self):
        net = ResNet18().eval()
        x = torch.randn(2, 3, 64, 64)
        with torch.no_grad():
            want = net(x)
            net = net.to("tiny").to(memory_format=torch.channels_last)
            y = net.layers(net.stem(x.to("tiny").to(memory_format=torch.channels_last)))
            self.assertTrue(y.is_contiguous(memory_format=torch.channels_last))
            self.close(net.head(y), want)

    def test_transformer(self):
        self.compare(Decoder(), torch.randint(50, (3, 12)), torch.randint(50, (3, 12)))

    def test_attention_for_inference(self):
        torch.manual_seed(0)
        x, words = torch.randn(2, 5, 16), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
        causal = nn.Transformer.generate_square_subsequent_mask(5)
        for kind in ({}, {"norm_first": True, "activation": "gelu"}):
            layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **kind)
            ours = nn.TransformerEncoder(layer, 2).eval()
            # Masked words are of no interest: PyTorch's CPU leaves them out, as a nested tensor.
            for masks in ({}, {"src_key_padding_mask": words}, {"mask": causal}, {"mask": causal, "src_key_padding_mask": words}):
                with torch.no_grad():
                    want = ours.to("cpu")(x, **masks)
                    got = ours.to("tiny")(x.to("tiny"), **{name: mask.to("tiny") for name, mask in masks.items()}).cpu()
                kept = ~words if "src_key_padding_mask" in masks else slice(None)
                torch.testing.assert_close(got[kept], want[kept], rtol=1e-4, atol=1e-4)
        attention = nn.MultiheadAttention(16, 4, batch_first=True).eval()
        for average in (True, False):
            found = []
            for device in ("cpu", "tiny"):
                with torch.no_grad():
                    y = x.to(device)
                    found.append(attention.to(device)(y, y, y, key_padding_mask=words.to(device), average_attn_weights=average))
            for got, want in zip(*found[::-1]):
                torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-4)

    def test_what_is_resized_goes_through_windows(self):
        net = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(3, 4, 1), nn.Upsample(scale_factor=2), nn.ConvTranspose2d(4, 3, 3, 2, 1, 1),
                            nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.compare(net, torch.randn(2, 3, 8, 8), torch.randint(3, (2,)))

    def test_lstm(self):
        self.compare(Recurrent(nn.LSTM), torch.randn(4, 7, 6), torch.randint(3, (4,)))

    def test_gru(self):
        self.compare(Recurrent(nn.GRU), torch.randn(4, 7, 6), torch.randint(3, (4,)))

    def test_mnist_is_learned(self):
        x, labels = digits(512)
        x, labels = x.to("tiny"), labels.to("tiny")
        net = Mnist().to("tiny")
        optimizer = torch.optim.Adam(net.parameters(), 5e-3)
        for _ in range(20):
            optimizer.zero_grad()
            F.cross_entropy(net(x), labels).backward()
            optimizer.step()
        accuracy = (net.eval()(x).argmax(1) == labels).float().mean().item()
        self.assertGreaterEqual(accuracy, 0.9)


class Optimizers(unittest.TestCase):
    def run_steps(self, device, make):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)).to(device)
        x, target = torch.randn(16, 5).to(device), torch.randint(3, (16,)).to(device)
        optimizer = make(net.parameters())
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(net(x), target).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        return [p.detach().cpu() for p in net.parameters()]

    def test_steps_are_the_cpus(self):
        o = torch.optim
        kinds = {
            "sgd": lambda p, **k: o.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=1e-2, **k),
            "adam": lambda p, **k: o.Adam(p, 1e-2, weight_decay=1e-2, **k),
            "amsgrad": lambda p, **k: o.Adam(p, 1e-2, amsgrad=True, **k),
            "adamw": lambda p, **k: o.AdamW(p, 1e-2, **k),
            "rmsprop": lambda p, **k: o.RMSprop(p, 1e-2, momentum=0.5, centered=True, **k),
            "adagrad": lambda p, **k: o.Adagrad(p, 1e-2, lr_decay=0.1, weight_decay=1e-2, **k),
            "nadam": lambda p, **k: o.NAdam(p, 1e-2, **k),
            "adamax": lambda p, **k: o.Adamax(p, 1e-2, **k),
        }
        for name, make in kinds.items():
            ways = [{}, {"foreach": True}] + ([{"fused": True}] if name in ("sgd", "adam", "amsgrad", "adamw", "adagrad") else [])
            want = self.run_steps("cpu", make)
            for way in ways:
                with self.subTest(name=name, way=way):
                    got = self.run_steps("tiny", lambda p: make(p, **way))
                    for a, b in zip(got, want):
                        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
