"""Networks of sequences: recurrences, transformers with and without caches, sound."""

import math

import torch
import torch.nn.functional as F
from example import Example
from torch import nn

WORDS = 200


def tokens(*shape):
    return torch.randint(0, WORDS, shape)


class Tagger(nn.Module):
    def __init__(self, recurrence, width):
        super().__init__()
        self.embedding, self.recurrence, self.head = nn.Embedding(WORDS, 48), recurrence, nn.Linear(width, 12)

    def forward(self, input_ids):
        return self.head(self.recurrence(self.embedding(input_ids))[0]).log_softmax(-1)


def tagger(recurrence, width):
    return Example(Tagger(recurrence, width), (tokens(2, 9),), ("input_ids",), {"input_ids": {0: "batch", 1: "sequence"}},
)  # fmt: skip


def lstm_tagger():
    return tagger(nn.LSTM(48, 64, 2, batch_first=True, bidirectional=True), 128)


def gru_tagger():
    return tagger(nn.GRU(48, 64, batch_first=True), 64)


def rnn_tagger():
    return tagger(nn.RNN(48, 64, 2, batch_first=True), 64)


class LstmStates(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(24, 32, 2, proj_size=0)

    def forward(self, x, h, c):
        y, (h, c) = self.lstm(x, (h, c))
        return y, h, c


def lstm_states():
    return Example(LstmStates(), (torch.randn(7, 2, 24), torch.randn(2, 2, 32), torch.randn(2, 2, 32)), ("x", "h", "c"))


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(16, 32), nn.GRUCell(32, 32), nn.RNNCell(32, 8)

    def forward(self, x, h, c):
        out = []
        for step in range(x.shape[1]):
            h, c = self.lstm(x[:, step], (h, c))
            out.append(self.rnn(self.gru(h, h), torch.zeros(x.shape[0], 8)))
        return torch.stack(out, 1), c


def unrolled_cells():
    return Example(Cells(), (torch.randn(2, 5, 16), torch.randn(2, 32), torch.randn(2, 32)), ("x", "h", "c"))


class Block(nn.Module):
    """A transformer's layer of any batch and length; torch's own has both in its graph when it is traced."""

    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, mask=None):
        n, length, width = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).reshape(n, length, width)
        x = self.norm1(x + self.out(y))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self, width=96, heads=4, depth=2):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(64, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.layers = nn.ModuleList(Block(width, heads, 4 * width) for _ in range(depth))
        self.pooled = nn.Linear(width, width)

    def forward(self, input_ids, attention_mask, token_type_ids):
        places = torch.arange(input_ids.shape[1]).unsqueeze(0)
        x = self.norm(self.words(input_ids) + self.places(places) + self.kinds(token_type_ids))
        mask = (1 - attention_mask[:, None, None].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooled(x[:, 0]))


def encoder():
    free = {0: "batch", 1: "sequence"}
    names = ("input_ids", "attention_mask", "token_type_ids")
    return Example(Encoder(), (tokens(2, 9), torch.ones(2, 9, dtype=torch.int64), torch.zeros(2, 9, dtype=torch.int64)), names,
                   {name: free for name in names})  # fmt: skip


def encoder_fixed():
    names = ("input_ids", "attention_mask", "token_type_ids")
    return Example(Encoder(), (tokens(2, 9), torch.ones(2, 9, dtype=torch.int64), torch.zeros(2, 9, dtype=torch.int64)), names)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class LlamaLayer(nn.Module):
    def __init__(self, width, heads, groups):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q, self.k = nn.Linear(width, width, bias=False), nn.Linear(width, groups * self.size, bias=False)
        self.v, self.o = nn.Linear(width, groups * self.size, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x, cos, sin, mask, past_key, past_value):
        n, length, width = x.shape
        y = self.norm1(x)
        q = turned(self.q(y).view(n, length, self.heads, self.size).transpose(1, 2), cos, sin)
        k = turned(self.k(y).view(n, length, self.groups, self.size).transpose(1, 2), cos, sin)
        v = self.v(y).view(n, length, self.groups, self.size).transpose(1, 2)
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
        shared = self.heads // self.groups
        wide = lambda t: t[:, :, None].expand(-1, -1, shared, -1, -1).reshape(n, self.heads, -1, self.size)
        scores = q @ wide(k).transpose(2, 3) / math.sqrt(self.size) + mask
        x = x + self.o((scores.softmax(-1) @ wide(v)).transpose(1, 2).reshape(n, length, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), k, v


class Llama(nn.Module):
    def __init__(self, width=64, heads=4, groups=2, depth=2):
        super().__init__()
        self.words, self.norm, self.size = nn.Embedding(WORDS, width), RmsNorm(width), width // heads
        self.layers = nn.ModuleList(LlamaLayer(width, heads, groups) for _ in range(depth))
        self.register_buffer("rates", 1 / 10000 ** (torch.arange(0, self.size, 2).float() / self.size))

    def forward(self, input_ids, attention_mask, position_ids, *past):
        length, total = input_ids.shape[1], attention_mask.shape[1]
        angles = (position_ids[:, :, None].float() * self.rates).repeat(1, 1, 2)[:, None]
        at = torch.arange(total - length, total)
        hidden = (torch.arange(total)[None] > at[:, None])[None, None] | (attention_mask[:, None, None] == 0)
        mask = torch.zeros(hidden.shape).masked_fill(hidden, -3.0e38)
        x, present = self.words(input_ids), []
        for layer, key, value in zip(self.layers, past[0::2], past[1::2]):
            x, key, value = layer(x, angles.cos(), angles.sin(), mask, key, value)
            present += [key, value]
        return (self.norm(x) @ self.words.weight.T, *present)


def llama_cache():
    names = ("input_ids", "attention_mask", "position_ids", *(f"past_key_values.{i}.{part}" for i in range(2)
                                                              for part in ("key", "value")))  # fmt: skip
    free = {"input_ids": {0: "batch", 1: "sequence"}, "attention_mask": {0: "batch", 1: "past_sequence + sequence"},
            "position_ids": {0: "batch", 1: "sequence"}}  # fmt: skip
    free |= {name: {0: "batch", 2: "past_sequence"} for name in names[3:]}
    past = tuple(torch.randn(2, 2, 5, 16) for _ in range(4))
    return Example(Llama(), (tokens(2, 3), torch.ones(2, 8, dtype=torch.int64), torch.arange(5, 8).repeat(2, 1), *past), names,
                   free)  # fmt: skip


def llama_step():
    names = ("input_ids", "attention_mask", "position_ids", *(f"past_key_values.{i}.{part}" for i in range(2)
                                                              for part in ("key", "value")))  # fmt: skip
    past = tuple(torch.randn(1, 2, 31, 16) for _ in range(4))
    return Example(Llama(), (tokens(1, 1), torch.ones(1, 32, dtype=torch.int64), torch.full((1, 1), 31), *past), names)


class StaticCache(nn.Module):
    """A cache of a fixed length that each step writes one place of."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x, keys, values, place):
        q, k, v = self.qkv(x).chunk(3, -1)
        keys = keys.index_put((torch.arange(2), place), k[:, 0])
        values = values.index_put((torch.arange(2), place), v[:, 0])
        scores = (q @ keys.transpose(1, 2)) / 32**0.5
        scores = scores.masked_fill(torch.arange(16)[None, None] > place[:, None, None], float("-inf"))
        return self.out(scores.softmax(-1) @ values), keys, values


def static_cache():
    return Example(StaticCache(), (torch.randn(2, 1, 32), torch.randn(2, 16, 32), torch.randn(2, 16, 32), torch.tensor([3, 9])),
                   ("x", "keys", "values", "place"))  # fmt: skip


class RelativeBias(nn.Module):
    """T5's buckets of distances."""

    def __init__(self):
        super().__init__()
        self.bias, self.qkv, self.words = nn.Embedding(32, 4), nn.Linear(64, 192), nn.Embedding(WORDS, 64)

    def forward(self, input_ids):
        x = self.words(input_ids)
        n, length, _ = x.shape
        at = torch.arange(length)
        apart = at[None] - at[:, None]
        far = apart.abs()
        log = (8 + torch.log(far.float().clamp(min=1) / 8) / math.log(16) * 8).long().clamp(max=15)
        bucket = (apart > 0).long() * 16 + torch.where(far < 8, far, log)
        q, k, v = self.qkv(x).view(n, length, 3, 4, 16).permute(2, 0, 3, 1, 4)
        return (q @ k.transpose(-1, -2) + self.bias(bucket).permute(2, 0, 1)).softmax(-1) @ v


def relative_bias():
    return Example(RelativeBias(), (tokens(2, 24),), ("input_ids",), {"input_ids": {0: "batch", 1: "sequence"}})


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, 64), nn.Parameter(torch.randn(64, 64) * 0.1)
        self.transformer = nn.Transformer(64, 4, 1, 1, 128, batch_first=True)

    def forward(self, input_ids, decoder_input_ids):
        a, b = (self.words(ids) + self.places[: ids.shape[1]] for ids in (input_ids, decoder_input_ids))
        length = decoder_input_ids.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf")), 1)
        return self.transformer(a, b, tgt_mask=mask) @ self.words.weight.T


def seq2seq():
    return Example(Seq2Seq(), (tokens(2, 9), tokens(2, 5)), ("input_ids", "decoder_input_ids"))


class Experts(nn.Module):
    """A mixture of experts, all computed, of which each token takes two."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(48, 4)
        self.up, self.down = nn.Parameter(torch.randn(4, 48, 96) * 0.1), nn.Parameter(torch.randn(4, 96, 48) * 0.1)

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2, -1)
        gates = torch.zeros(*x.shape[:-1], 4).scatter(-1, chosen, weights / weights.sum(-1, keepdim=True))
        y = torch.einsum("ntef,efd->nted", F.gelu(torch.einsum("ntd,edf->ntef", x, self.up)), self.down)
        return torch.einsum("nted,nte->ntd", y, gates)


def experts():
    return Example(Experts(), (torch.randn(2, 10, 48),), ("x",), {"x": {0: "batch", 1: "sequence"}})


class SelectiveScan(nn.Module):
    """Mamba's recurrence over a few steps, and its short convolution."""

    def __init__(self, width=32, state=8):
        super().__init__()
        self.enter, self.conv = nn.Linear(width, 2 * width), nn.Conv1d(width, width, 4, padding=3, groups=width)
        self.rates, self.step = nn.Linear(width, 2 * state), nn.Linear(width, width)
        self.decay, self.keep, self.leave = nn.Parameter(torch.rand(width, state)), nn.Parameter(torch.ones(width)), nn.Linear(width, width)

    def forward(self, x):
        x, gate = self.enter(x).chunk(2, -1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        b, c = self.rates(x).chunk(2, -1)
        step = F.softplus(self.step(x))
        decay = torch.exp(-step[..., None] * self.decay.exp())
        put = (step * x)[..., None] * b[:, :, None]
        h, out = torch.zeros_like(put[:, 0]), []
        for t in range(x.shape[1]):
            h = decay[:, t] * h + put[:, t]
            out.append((h * c[:, t, None]).sum(-1))
        return self.leave((torch.stack(out, 1) + x * self.keep) * F.silu(gate))


def selective_scan():
    return Example(SelectiveScan(), (torch.randn(2, 12, 32),), ("x",))


class LinearAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        states = torch.cumsum(k[..., None] * v[:, :, None], 1)
        return torch.einsum("btd,btde->bte", q, states) / (q * torch.cumsum(k, 1)).sum(-1, keepdim=True)


def linear_attention():
    return Example(LinearAttention(), (torch.randn(2, 40, 32),), ("x",))


class Conformer(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
        self.attention = Block(width, 4, 2 * width)
        self.point1, self.depth = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 15, padding=7, groups=width)
        self.batch, self.point2 = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)

    def forward(self, x):
        x = x + 0.5 * self.feed(self.norms[0](x))
        y = self.norms[1](x)
        x = x + self.attention(y)
        y = F.glu(self.point1(self.norms[2](x).transpose(1, 2)), 1)
        x = x + self.point2(F.silu(self.batch(self.depth(y)))).transpose(1, 2)
        return self.norms[3](x + 0.5 * self.feed(x))


def conformer():
    return Example(nn.Sequential(Conformer(), Conformer()), (torch.randn(1, 50, 64),), ("frames",), {"frames": {1: "time"}},
)  # fmt: skip


class WaveFeatures(nn.Module):
    """What stands before wav2vec's transformer."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(a, 64, k, s, bias=False) for a, k, s in ((1, 10, 5), (64, 3, 2), (64, 3, 2), (64, 2, 2)))
        self.norm, self.place = nn.GroupNorm(64, 64), nn.Conv1d(64, 64, 16, padding=8, groups=8)

    def forward(self, wave):
        x = wave[:, None]
        for index, conv in enumerate(self.convs):
            x = conv(x)
            x = F.gelu(self.norm(x) if index == 0 else x)
        return (x + F.gelu(self.place(x)[..., :-1])).transpose(1, 2)


def wave_features():
    return Example(WaveFeatures(), (torch.randn(1, 4000),), ("wave",), {"wave": {1: "samples"}})


class MelSpectrum(nn.Module):
    """log-mel features by torch.stft, as Whisper's."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(400))
        self.register_buffer("filters", torch.rand(40, 201) * (torch.rand(40, 201) < 0.1))

    def forward(self, wave):
        spectrum = torch.view_as_real(torch.stft(wave, 400, 160, window=self.window, return_complex=True))
        power = spectrum.pow(2).sum(-1)[..., :-1]
        log = torch.log10((self.filters @ power).clamp(min=1e-10))
        return (torch.maximum(log, log.amax((1, 2), keepdim=True) - 8) + 4) / 4


def mel_spectrum():
    return Example(MelSpectrum(), (torch.randn(1, 8000),), ("wave",))


class MelByConvolution(nn.Module):
    """The same as a convolution with sines, which most published front ends are."""

    def __init__(self):
        super().__init__()
        at = torch.arange(256)[:, None] * torch.arange(129)[None] * 2 * math.pi / 256
        window = torch.hann_window(256)[:, None]
        self.register_buffer("basis", torch.cat([torch.cos(at) * window, torch.sin(at) * window], 1).T[:, None].contiguous())
        self.register_buffer("filters", torch.rand(32, 129))

    def forward(self, wave):
        x = F.conv1d(F.pad(wave[:, None], (128, 128), mode="reflect"), self.basis, stride=128)
        real, imaginary = x.chunk(2, 1)
        return torch.log(self.filters @ torch.sqrt(real**2 + imaginary**2 + 1e-9) + 1e-5)


def mel_by_convolution():
    return Example(MelByConvolution(), (torch.randn(1, 8000),), ("wave",), {"wave": {0: "batch", 1: "samples"}},
)  # fmt: skip


class Vocoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.leave = nn.Conv1d(40, 64, 7, padding=3), nn.Conv1d(16, 1, 7, padding=3)
        self.ups = nn.ModuleList(nn.ConvTranspose1d(a, a // 2, 8, 4, 2) for a in (64, 32))
        self.blocks = nn.ModuleList(nn.ModuleList(nn.Conv1d(a, a, 3, padding=d, dilation=d) for d in (1, 3, 5)) for a in (32, 16))

    def forward(self, mel):
        x = self.enter(mel)
        for up, block in zip(self.ups, self.blocks):
            x = up(F.leaky_relu(x, 0.1))
            for conv in block:
                x = x + conv(F.leaky_relu(x, 0.1))
        return torch.tanh(self.leave(F.leaky_relu(x)))


def vocoder():
    return Example(Vocoder(), (torch.randn(1, 40, 30),), ("mel",), {"mel": {2: "frames"}})


class Wavenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.leave = nn.Conv1d(1, 24, 1), nn.Conv1d(24, 16, 1)
        self.gates = nn.ModuleList(nn.Conv1d(24, 48, 2, dilation=2**i) for i in range(6))
        self.skips = nn.ModuleList(nn.Conv1d(24, 24, 1) for _ in range(6))

    def forward(self, x):
        x, total = self.enter(x), 0
        for i, (gate, skip) in enumerate(zip(self.gates, self.skips)):
            a, b = gate(F.pad(x, (2**i, 0))).chunk(2, 1)
            y = skip(torch.tanh(a) * torch.sigmoid(b))
            total, x = total + y, x + y
        return self.leave(F.relu(total))


def wavenet():
    return Example(Wavenet(), (torch.randn(1, 1, 500),), ("wave",))


class Crnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                                  nn.ReLU(), nn.MaxPool2d((8, 1)))  # fmt: skip
        self.rnn, self.head = nn.LSTM(64, 48, bidirectional=True, batch_first=True), nn.Linear(96, 30)

    def forward(self, x):
        x = self.conv(x).permute(0, 3, 1, 2).flatten(2)
        scores = self.head(self.rnn(x)[0])
        return scores.log_softmax(-1), scores.argmax(-1)


def crnn():
    return Example(Crnn(), (torch.randn(1, 1, 32, 96),), ("line",), {"line": {3: "width"}})


class TextCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(WORDS, 50, padding_idx=0), nn.Linear(96, 5)
        self.convs = nn.ModuleList(nn.Conv1d(50, 32, k) for k in (3, 4, 5))

    def forward(self, input_ids):
        x = self.words(input_ids).transpose(1, 2)
        return self.head(torch.cat([F.relu(conv(x)).amax(2) for conv in self.convs], 1))


def text_cnn():
    return Example(TextCnn(), (tokens(2, 20),), ("input_ids",), {"input_ids": {0: "batch"}})


class SentenceEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 64)
        self.layer = Block(64, 4, 128)

    def forward(self, input_ids, attention_mask):
        x = self.layer(self.words(input_ids))
        weights = attention_mask.unsqueeze(-1).to(x.dtype)
        return F.normalize((x * weights).sum(1) / weights.sum(1).clamp(min=1e-9), dim=-1)


def sentence_embedding():
    names, free = ("input_ids", "attention_mask"), {0: "batch", 1: "sequence"}
    return Example(SentenceEmbedding(), (tokens(2, 9), torch.ones(2, 9, dtype=torch.int64)), names, {name: free for name in names},
)  # fmt: skip


class Viterbi(nn.Module):
    """The best path through a conditional random field."""

    def __init__(self):
        super().__init__()
        self.moves = nn.Parameter(torch.randn(7, 7))

    def forward(self, scores):
        best, back = scores[:, 0], []
        for t in range(1, scores.shape[1]):
            best, from_ = (best[:, :, None] + self.moves).max(1)
            best = best + scores[:, t]
            back.append(from_)
        path = [best.argmax(1, keepdim=True)]
        for from_ in reversed(back):
            path.append(from_.gather(1, path[-1]))
        return best.amax(1), torch.cat(path[::-1], 1)


def viterbi():
    return Example(Viterbi(), (torch.randn(2, 9, 7),), ("scores",))


class Ctc(nn.Module):
    def forward(self, log_probs):
        best = log_probs.argmax(-1)
        same = F.pad(best[:, 1:] == best[:, :-1], (1, 0), value=False)
        return torch.where(same | (best == 0), torch.full_like(best, -1), best), log_probs.amax(-1).sum(-1)


def ctc_greedy():
    return Example(Ctc(), (torch.randn(2, 30, 20),), ("log_probs",), {"log_probs": {0: "batch", 1: "time"}})


class BeamStep(nn.Module):
    def forward(self, scores, logits, previous):
        total = scores[:, :, None] + logits.log_softmax(-1)
        best, places = total.flatten(1).topk(4, 1)
        beams = torch.div(places, logits.shape[-1], rounding_mode="floor")
        kept = previous.gather(1, beams[:, :, None].expand(-1, -1, previous.shape[2]))
        return best, torch.cat([kept, (places % logits.shape[-1])[:, :, None]], 2)


def beam_step():
    return Example(BeamStep(), (torch.randn(2, 4), torch.randn(2, 4, 50), tokens(2, 4, 6)), ("scores", "logits", "previous"))


class Sampler(nn.Module):
    """What is left of logits after top-k, top-p and a penalty for what was said."""

    def forward(self, logits, previous):
        said = logits.gather(1, previous)
        logits = logits.scatter(1, previous, torch.where(said < 0, said * 1.2, said / 1.2))
        kth = logits.topk(20)[0][:, -1:]
        logits = logits.masked_fill(logits < kth, float("-inf"))
        ordered, places = logits.sort(descending=True)
        over = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1) > 0.9
        return logits.masked_fill(over.scatter(1, places, over), float("-inf")).softmax(-1)


def sampler():
    return Example(Sampler(), (torch.randn(2, WORDS), tokens(2, 6)), ("logits", "previous"))


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.text, self.image = nn.EmbeddingBag(WORDS, 32, mode="mean"), nn.Sequential(nn.Conv2d(3, 32, 8, 8), nn.Flatten(2))
        self.scale = nn.Parameter(torch.tensor(2.6592))

    def forward(self, input_ids, pixel_values):
        a, b = F.normalize(self.text(input_ids), dim=-1), F.normalize(self.image(pixel_values).mean(2), dim=-1)
        scores = self.scale.exp() * a @ b.T
        return scores, scores.T.softmax(-1)


def clip():
    return Example(Clip(), (tokens(4, 6), torch.randn(2, 3, 32, 32)), ("input_ids", "pixel_values"))


@torch.jit.script
def steps_of(words, cell_in, cell_state, head, token, state):
    """Greedy steps of a cell: a loop of the graph, whose body looks up what the round before chose."""
    for _ in range(6):
        x = words[token]
        state = torch.tanh(x @ cell_in + state @ cell_state)
        token = (state @ head).argmax(-1)
    return token, state


class ScriptedLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.cell_in = nn.Parameter(torch.randn(WORDS, 32)), nn.Parameter(torch.randn(32, 32) * 0.2)
        self.cell_state, self.head = nn.Parameter(torch.randn(32, 32) * 0.2), nn.Parameter(torch.randn(32, WORDS))

    def forward(self, token, state):
        return steps_of(self.words, self.cell_in, self.cell_state, self.head, token, state)


def scripted_loop():
    return Example(ScriptedLoop(), (tokens(2), torch.randn(2, 32)), ("token", "state"))


NETWORKS = {maker.__name__: maker for maker in (
    lstm_tagger, gru_tagger, rnn_tagger, lstm_states, unrolled_cells, encoder, encoder_fixed, llama_cache, llama_step,
    static_cache, relative_bias, seq2seq, experts, selective_scan, linear_attention, conformer, wave_features, mel_spectrum,
    mel_by_convolution, vocoder, wavenet, crnn, text_cnn, sentence_embedding, viterbi, ctc_greedy, beam_step, sampler, clip,
    scripted_loop)}  # fmt: skip
