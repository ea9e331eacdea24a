"""Networks whose data decides sizes as torch's tracing exporter writes them, against onnxruntime at several sizes.

    PYTHONPATH=build/release/bindings/python exported_sizes_test.py [PATTERN]
"""

import io
import os
import sys
import warnings

import named_tests

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
warnings.filterwarnings("ignore")
try:
    import numpy as np
    import onnxruntime
    import tiny
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

CONTEXT = tiny.Context(device="cpu")
OPSET = 17
onnxruntime.set_default_logger_severity(4)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *given):
        return self.function(*given)


def check(module, free, *cases):
    """`free`: for each input the axes whose sizes the cases have of their own."""
    if not isinstance(module, nn.Module):
        module = Function(module)
    file, names = io.BytesIO(), [f"i{k}" for k in range(len(free))]
    torch.onnx.export(module.eval(), tuple(cases[0]), file, input_names=names, opset_version=OPSET, dynamo=False,
                      dynamic_axes={name: axes for name, axes in zip(names, free, strict=True) if axes})
    theirs = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    ours = tiny.Model.load(CONTEXT, file.getvalue())
    for case in cases:
        given = [one.numpy() for one in case]
        want = theirs.run(None, dict(zip(names, given, strict=True)))
        for got, other in zip(ours.run(given), want, strict=True):
            array = np.array(got.numpy())
            assert array.shape == other.shape, (array.shape, other.shape)
            np.testing.assert_allclose(array, other, 1e-4, 1e-4)


def integers(most, *shape):
    return torch.randint(0, most, shape)


def numbers(*shape):
    return torch.randn(*shape)


def detection_heads():
    def head(boxes, scores):
        best, places = torch.topk(scores, 30)
        keep = best > 0.2
        boxes, best = boxes[places][keep], best[keep]
        right = (boxes[:, 0] > 0).nonzero().squeeze(1)
        return boxes[right], best[:10], torch.cat([boxes, best[:, None]], 1)

    check(head, ([0], [0]), (numbers(100, 4), torch.rand(100)), (numbers(200, 4), torch.rand(200) * 0.3))


class Beams(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(12, 6), nn.Linear(6, 12)

    def forward(self, x, steps: int):
        tokens, scores = x.unsqueeze(0).repeat(3, 1), torch.zeros(3)
        step, is_done = 0, False
        while step < steps and not is_done:
            every = torch.log_softmax(self.head(self.words(tokens).mean(1)), -1) + scores[:, None]
            scores, places = torch.topk(every.flatten(), 3)
            beam = torch.div(places, 12, rounding_mode="floor")
            token = places - beam * 12
            tokens = torch.cat([tokens[beam], token[:, None]], 1)
            is_done = bool((token == 0).all())
            step += 1
        return tokens, scores


def beams_in_a_loop():
    check(torch.jit.script(Beams()), ([0], None), (torch.tensor([1, 2]), torch.tensor(5)), (torch.tensor([3, 4, 5]), torch.tensor(9)))


def masks_that_are_kept():
    def head(logits, masks):
        scores, labels = logits.softmax(-1).max(-1)
        keep = (labels != 3) & (scores > 0.3)
        kept = masks[keep].sigmoid()
        wide = functional.interpolate(kept[:, None], scale_factor=2.0, mode="bilinear")
        return kept * scores[keep][:, None, None], (kept > 0.5).flatten(1).float().sum(1), labels[keep], wide

    check(head, ([0], [0]), (numbers(20, 4), numbers(20, 8, 8)), (numbers(33, 4), numbers(33, 8, 8)))
    check(lambda x: torch.masked_select(x, x > 0) * 2, ([0],), (numbers(20, 4),), (numbers(33, 4),))


def lengths_are_regulated():
    def by_matrix(x, durations):
        whole = (durations + 0.5).long().clamp(min=0)
        ends = torch.cumsum(whole, 1)
        frame = torch.arange(ends[:, -1].max())[None, :, None]
        return ((frame < ends[:, None]) & (frame >= (ends - whole)[:, None])).float() @ x

    def by_repeats(x, durations):
        rows = torch.repeat_interleave(x, durations.long(), dim=0).t()[None]
        longer = functional.interpolate(rows, scale_factor=3.0, mode="linear")
        return functional.conv1d(rows, torch.ones(2, 4, 3), padding=1), functional.interpolate(rows, scale_factor=2.0), longer

    check(by_matrix, ([0, 1], [0, 1]), (numbers(2, 7, 4), torch.rand(2, 7) * 4), (numbers(3, 20, 4), torch.rand(3, 20) * 9))
    check(by_repeats, (None, None), *((numbers(80, 4), integers(most, 80).float()) for most in (3, 5)))


class Padded(nn.Module):
    def forward(self, x):
        more = (8 - x.shape[1] % 8) % 8
        return functional.pad(x, (0, 0, 0, more)).reshape(x.shape[0], -1, 8, 4).mean(2)


def padding_to_a_multiple():
    check(torch.jit.script(Padded()), ([0, 1],), (numbers(2, 20, 4),), (numbers(3, 33, 4),), (numbers(1, 16, 4),))


def positions_are_sliced():
    table = numbers(100, 8)

    def from_a_begin(x, begin):
        return x + table[begin.sum() : begin.sum() + x.shape[1]][: x.shape[1]]

    def by_a_mask(x, mask):
        return table[: mask.sum()], table[mask.sum() :], x[:, : mask.sum()]

    check(from_a_begin, ([0, 1], None), (numbers(2, 20, 8), torch.tensor([3])), (numbers(2, 30, 8), torch.tensor([40])))
    check(by_a_mask, (None, None), *((numbers(2, 70, 8), torch.arange(70) < count) for count in (9, 69, 0)))


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(4, 6, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        steps, (hidden, cell) = self.layer(packed)
        return nn.utils.rnn.pad_packed_sequence(steps, batch_first=True)[0], hidden, cell


def sequences_are_packed_by_lengths():
    check(Packed(), ([0, 1], [0]), (numbers(3, 10, 4), torch.tensor([10, 7, 3])), (numbers(4, 12, 4), torch.tensor([5, 12, 7, 2])))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)) for _ in range(4))

    def forward(self, x):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2, -1)
        masks, out = functional.one_hot(chosen, 4).permute(2, 1, 0), torch.zeros_like(x)
        for expert, mask in zip(self.experts, masks, strict=True):
            place, token = torch.where(mask)
            out.index_add_(0, token, expert(x[token]) * weights[token, place, None])
        return out


def tokens_go_to_experts():
    check(Experts(), ([0],), *((numbers(rows, 8),) for rows in (20, 33, 3)))


def groups_of_equal_ids():
    def means(x, ids):
        kinds, group = torch.unique(ids, return_inverse=True)
        sums = torch.zeros(kinds.shape[0], 4).index_add(0, group, x)
        return sums / torch.zeros(kinds.shape[0]).index_add(0, group, torch.ones(x.shape[0]))[:, None], kinds

    check(means, ([0], [0]), *((numbers(rows, 4), integers(groups, rows)) for rows, groups in ((20, 5), (30, 9), (4, 1))))
    check(lambda x: torch.unique(x, return_inverse=True, return_counts=True), ([0],), *((integers(most, rows),) for most, rows in ((9, 50), (3, 80))))


def slices_sorts_and_pictures_of_what_was_found():
    def slices(x):
        y = x[x.sum(1) > 0]
        a, b, c = y.chunk(3, 1)
        return a * b + c, y[1:] - y[:-1], y.flip(0), torch.roll(y, 1, 0), y[::2].sum(0), y[-1:], y[2:-1] + y[1:-2]

    def sorts(x):
        y = x[x > 0]
        order, places = torch.sort(y, descending=True)
        return order, places, torch.cumsum(y, 0), torch.tril(torch.ones(y.shape[0], y.shape[0]))

    def pictures(x, keep):
        y = x[keep.nonzero().squeeze(1)]
        return functional.pixel_shuffle(y, 2), functional.pixel_unshuffle(y, 2), functional.adaptive_avg_pool2d(y, 1), functional.unfold(y, 2)

    check(slices, ([0],), (numbers(20, 6),), (numbers(30, 6),))
    check(sorts, ([0],), (numbers(50),), (numbers(77),))
    check(pictures, ([0], [0]), *((numbers(rows, 4, 6, 6), (torch.arange(rows) % 2)) for rows in (5, 7)))


def quotients_of_sizes():
    def windows(x):
        more = (7 - x.shape[2] % 7) % 7
        wide = functional.pad(x, (0, more))
        return wide.view(1, 3, wide.shape[2] // 7, 7).softmax(-1)

    def table(x):
        rows = torch.linspace(-1, 1, 98).reshape(1, 2, 7, 7)
        return functional.interpolate(rows, size=(x.shape[2] // 8, x.shape[3] // 8), mode="bicubic") + functional.avg_pool2d(x, 8)[:, :2]

    def filled_up(x):
        half = functional.max_pool2d(x, 2)
        up = functional.interpolate(functional.max_pool2d(half, 2), scale_factor=2.0)
        more = half.shape[3] - up.shape[3]
        return half[:, :, : up.shape[2]] + functional.pad(up, (more // 2, more - more // 2))

    def shifted(x):
        rows = x @ torch.cat([x, x], 1).transpose(1, 2)
        wide = functional.pad(rows, (1, 0)).view(1, -1, x.shape[1])
        return wide[:, 1:].reshape(1, x.shape[1], -1)[:, :, : x.shape[1]]

    check(windows, ([2],), *((numbers(1, 3, length),) for length in (20, 21, 40, 9)))
    for module in (table, filled_up):
        check(module, ([2, 3],), *((numbers(1, 3, *size),) for size in ((64, 48), (70, 50), (33, 47))))
    check(shifted, ([1],), *((numbers(1, length, 4),) for length in (9, 12, 33)))


TESTS = (detection_heads, beams_in_a_loop, masks_that_are_kept, lengths_are_regulated, padding_to_a_multiple, positions_are_sliced,
         sequences_are_packed_by_lengths, tokens_go_to_experts, groups_of_equal_ids, slices_sorts_and_pictures_of_what_was_found, quotients_of_sizes)  # fmt: skip

if __name__ == "__main__":
    torch.manual_seed(0)
    sys.exit(named_tests.run(TESTS))
