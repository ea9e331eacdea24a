"""Words: models of language, translation, tagging, speech."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import rnn

from . import program, train

WORDS = 40


class WordModel(nn.Module):
    """Recurrent, with one weight for what goes in and what comes out."""

    def __init__(self, kind, width=16, **options):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.cells = kind(width, width, 2, **options)
        self.head = nn.Linear(width, WORDS)
        self.head.weight = self.words.weight

    def forward(self, x, state):
        y, state = self.cells(self.words(x), state)
        return F.log_softmax(self.head(y).view(-1, WORDS), dim=1), state


def detached(state):
    return state.detach() if isinstance(state, torch.Tensor) else tuple(detached(part) for part in state)


def word_model(place, kind, has_cells=False, **options):
    net = place(WordModel(kind, **options))
    call = place.compiled(net)
    text = place(torch.randint(WORDS, (25, 4)))
    state = torch.zeros(2, 4, 16, device=place.device)
    state = (state, state.clone()) if has_cells else state
    losses = []
    for at in range(0, 20, 5):
        state = detached(state)
        net.zero_grad()
        y, state = call(text[at:at + 5], state)
        loss = F.nll_loss(y, text[at + 1:at + 6].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.25)
        with torch.no_grad():
            for p in net.parameters():
                p.add_(p.grad, alpha=-2.0)
        losses.append(loss.detach())
    return [torch.stack(losses), *net.parameters()]


@program()
def word_language_model_lstm(place):
    return word_model(place, nn.LSTM, has_cells=True)


@program()
def word_language_model_gru(place):
    return word_model(place, nn.GRU)


@program()
def word_language_model_rnn(place):
    return word_model(place, nn.RNN, nonlinearity="relu")


class Positions(nn.Module):
    def __init__(self, width, longest=32):
        super().__init__()
        at = torch.arange(longest).unsqueeze(1)
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        waves = torch.zeros(longest, 1, width)
        waves[:, 0, 0::2] = torch.sin(at * rates)
        waves[:, 0, 1::2] = torch.cos(at * rates)
        self.register_buffer("waves", waves)

    def forward(self, x):
        return x + self.waves[:x.size(0)]


class TransformerModel(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.width = width
        self.words, self.positions = nn.Embedding(WORDS, width), Positions(width)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 2, 32, 0.0), 2)
        self.head = nn.Linear(width, WORDS)
        self.mask = None

    def forward(self, x):
        if self.mask is None or self.mask.size(0) != len(x):
            self.mask = torch.log(torch.tril(torch.ones(len(x), len(x)))).to(x.device)
        y = self.positions(self.words(x) * math.sqrt(self.width))
        return F.log_softmax(self.head(self.layers(y, mask=self.mask)), dim=-1)


@program()
def word_language_model_transformer(place):
    net = place(TransformerModel())
    text = place(torch.randint(WORDS, (25, 4)))
    call = place.compiled(net)
    return train(lambda i: F.nll_loss(call(text[4 * i:4 * i + 5]).view(-1, WORDS), text[4 * i + 1:4 * i + 6].reshape(-1)),
                 net.parameters())


class Rotary(nn.Module):
    """A block as Llama's: RMS norm, rotated queries and keys of fewer heads, a gated product."""

    def __init__(self, width=16, heads=4, kept=2):
        super().__init__()
        self.heads, self.kept, self.size = heads, kept, width // heads
        self.q, self.kv = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * kept * self.size, bias=False)
        self.o, self.gate = nn.Linear(width, width, bias=False), nn.Linear(width, 64, bias=False)
        self.down, self.norm1, self.norm2 = nn.Linear(32, width, bias=False), nn.RMSNorm(width), nn.RMSNorm(width)

    def rotated(self, x, first):
        angles = torch.arange(first, first + x.shape[2], device=x.device)[:, None] * 100.0 ** -torch.linspace(
            0, 1, self.size // 2, device=x.device)
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), -1).flatten(-2)

    def forward(self, x, cache=None, first=0):
        y = self.norm1(x)
        q = self.q(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.kv(y).unflatten(-1, (2 * self.kept, -1)).transpose(1, 2).chunk(2, dim=1)
        q, k = self.rotated(q, first), self.rotated(k, first)
        if cache is not None:
            cache[:, :, :, first:first + x.shape[1]] = torch.stack((k, v))
            k, v = cache[:, :, :, :first + x.shape[1]]
        k, v = (part.repeat_interleave(self.heads // self.kept, dim=1) for part in (k, v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=cache is None).transpose(1, 2).flatten(2))
        a, b = self.gate(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(a) * b)


@program()
def llama_training_and_generation(place):
    words, block = nn.Embedding(WORDS, 16), Rotary()
    net = place(nn.ModuleList((words, block)))
    text = place(torch.randint(WORDS, (3, 9)))
    call = place.compiled(lambda x: block(words(x)) @ words.weight.t())
    found = train(lambda i: F.cross_entropy(call(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()), net.parameters(),
                  optimizer=torch.optim.AdamW(net.parameters(), 1e-2, eps=1e-4))
    with torch.no_grad():
        cache = torch.zeros(2, 3, 2, 16, 4, device=place.device)
        given = text[:, :4]
        scores = block(words(given), cache) @ words.weight.t()
        for at in range(4, 10):
            best = scores[:, -1].topk(3).values[:, -1:]
            chosen = scores[:, -1].masked_fill(scores[:, -1] < best, -math.inf).softmax(-1).argmax(-1, keepdim=True)
            given = torch.cat((given, chosen), 1)
            scores = block(words(chosen), cache, at) @ words.weight.t()
    return [*found, given, scores]


class Attending(nn.Module):
    """Translation by cells, with attention to what was read (Bahdanau)."""

    def __init__(self, width=16):
        super().__init__()
        self.source, self.target = nn.Embedding(WORDS, width, padding_idx=0), nn.Embedding(WORDS, width)
        self.reader, self.writer = nn.GRU(width, width, batch_first=True, bidirectional=True), nn.GRUCell(3 * width, width)
        self.first, self.query = nn.Linear(2 * width, width), nn.Linear(width, width)
        self.keys, self.score, self.head = nn.Linear(2 * width, width), nn.Linear(width, 1), nn.Linear(3 * width, WORDS)

    def forward(self, source, lengths, target):
        packed = rnn.pack_padded_sequence(self.source(source), lengths, batch_first=True, enforce_sorted=False)
        read, _ = rnn.pad_packed_sequence(self.reader(packed)[0], batch_first=True)
        is_padding = torch.arange(read.shape[1], device=read.device) >= lengths.to(read.device)[:, None]
        state, scores = torch.tanh(self.first(read.sum(1) / lengths.to(read.device)[:, None])), []
        for at in range(target.shape[1]):
            e = self.score(torch.tanh(self.query(state)[:, None] + self.keys(read))).squeeze(-1)
            weights = e.masked_fill(is_padding, float("-inf")).softmax(-1)
            context = torch.bmm(weights[:, None], read).squeeze(1)
            state = self.writer(torch.cat((self.target(target[:, at]), context), -1), state)
            scores.append(self.head(torch.cat((state, context), -1)))
        return torch.stack(scores, 1)


@program()
def translation_with_attention(place):
    net = place(Attending())
    lengths = torch.tensor([4, 6, 2])
    source = torch.randint(1, WORDS, (3, 6))
    source[torch.arange(6) >= lengths[:, None]] = 0
    source, target = place(source, torch.randint(WORDS, (3, 5)))
    return train(lambda i: F.cross_entropy(net(source, lengths, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten(),
                                           label_smoothing=0.1), net.parameters(), steps=3)


class Tagger(nn.Module):
    """Both directions, and scores of neighbouring tags (a linear-chain CRF)."""

    def __init__(self, tags=5, width=8):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.cells = nn.LSTM(width, width, bidirectional=True)
        self.head = nn.Linear(2 * width, tags)
        self.pairs = nn.Parameter(torch.randn(tags, tags))

    def scores(self, x):
        return self.head(self.cells(self.words(x))[0])

    def loss(self, x, tags):
        scores = self.scores(x)
        reached = scores[0]
        for row in scores[1:]:
            reached = torch.logsumexp(reached[:, :, None] + self.pairs, dim=1) + row
        given = scores.gather(2, tags[:, :, None]).sum() + self.pairs[tags[:-1], tags[1:]].sum()
        return (reached.logsumexp(-1).sum() - given) / x.shape[1]

    def best(self, x):
        scores = self.scores(x)
        reached, came = scores[0], []
        for row in scores[1:]:
            value, place = (reached[:, :, None] + self.pairs).max(1)
            reached = value + row
            came.append(place)
        path = [reached.argmax(-1)]
        for place in reversed(came):
            path.append(place.gather(1, path[-1][:, None]).squeeze(1))
        return torch.stack(path[::-1])


@program()
def tagging_with_a_random_field(place):
    net = place(Tagger())
    x, tags = place(torch.randint(WORDS, (6, 3)), torch.randint(5, (6, 3)))
    loss = place.compiled(net.loss)
    found = train(lambda i: loss(x, tags), net.parameters(), steps=4)
    return [*found, net.best(x)]


@program()
def text_classification_with_bags(place):
    bags, head = nn.EmbeddingBag(WORDS, 8, mode="mean"), nn.Linear(8, 4)
    net = place(nn.ModuleList((bags, head)))
    words, begins, kinds = place(torch.randint(WORDS, (20,)), torch.tensor([0, 3, 9, 15]), torch.tensor([0, 1, 2, 3]))
    return train(lambda i: F.cross_entropy(head(bags(words, begins)), kinds), net.parameters(), rate=1.0)


@program()
def wav2letter_with_ctc(place):
    net = place(nn.Sequential(nn.Conv1d(8, 16, 5, 2, 2), nn.BatchNorm1d(16), nn.Hardtanh(0, 20), nn.Conv1d(16, 16, 3, 1, 1),
                              nn.GLU(1), nn.Conv1d(8, 7, 1)))
    call = place.compiled(net)
    x, letters = place(torch.randn(3, 8, 24), torch.randint(1, 7, (3, 4)))
    heard, written = torch.tensor([12, 10, 12]), torch.tensor([4, 3, 2])
    return train(lambda i: F.ctc_loss(call(x).permute(2, 0, 1).log_softmax(-1), letters, heard, written, zero_infinity=True),
                 net.parameters(), rate=0.01)


@program()
def convolutions_over_time(place):
    """A temporal network: causal, dilated, normed weights, residuals."""
    class Causal(nn.Module):
        def __init__(self, inputs, outputs, dilation):
            super().__init__()
            self.convolution = nn.utils.parametrizations.weight_norm(nn.Conv1d(inputs, outputs, 3, dilation=dilation))
            self.dilation, self.down = dilation, nn.Conv1d(inputs, outputs, 1)

        def forward(self, x):
            return F.relu(self.convolution(F.pad(x, (2 * self.dilation, 0))) + self.down(x))
    net = place(nn.Sequential(Causal(2, 8, 1), Causal(8, 8, 2), Causal(8, 8, 4)))
    head = place(nn.Linear(8, 1))
    x = place(torch.rand(6, 2, 20))
    call = place.compiled(lambda x: head(net(x)[:, :, -1]))
    return train(lambda i: F.mse_loss(call(x), x.prod(1).sum(-1, keepdim=True)), [*net.parameters(), *head.parameters()], rate=0.01)


@program()
def state_space_scan(place):
    """As Mamba: a causal convolution by channels, gates, a recurrence as a scan."""
    class Scan(nn.Module):
        def __init__(self, width=8, states=4):
            super().__init__()
            self.inputs, self.convolution = nn.Linear(width, 2 * width), nn.Conv1d(width, width, 3, padding=2, groups=width)
            self.parts, self.decays = nn.Linear(width, width + 2 * states), nn.Parameter(torch.rand(width, states))
            self.skip, self.out, self.states = nn.Parameter(torch.ones(width)), nn.Linear(width, width), states

        def forward(self, x):
            x, gate = self.inputs(x).chunk(2, -1)
            x = F.silu(self.convolution(x.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
            step, b, c = self.parts(x).split([x.shape[-1], self.states, self.states], -1)
            step = F.softplus(step)
            decay = torch.exp(-step[..., None] * self.decays.exp())
            given = step[..., None] * b[:, :, None] * x[..., None]
            state, rows = torch.zeros_like(given[:, 0]), []
            for at in range(x.shape[1]):
                state = decay[:, at] * state + given[:, at]
                rows.append(torch.einsum("bds,bs->bd", state, c[:, at]))
            return self.out((torch.stack(rows, 1) + x * self.skip) * F.silu(gate))
    net = place(Scan())
    x = place(torch.randn(2, 6, 8))
    call = place.compiled(net)
    return train(lambda i: F.mse_loss(call(x), x.roll(1, 1)), net.parameters())


@program()
def mixture_of_experts(place):
    class Experts(nn.Module):
        def __init__(self, width=8, count=4, chosen=2):
            super().__init__()
            self.router, self.chosen = nn.Linear(width, count), chosen
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width)) for _ in range(count))

        def forward(self, x):
            weights, places = self.router(x).softmax(-1).topk(self.chosen)
            weights = weights / weights.sum(-1, keepdim=True)
            y = torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                rows, slots = torch.where(places == i)
                y.index_add_(0, rows, expert(x[rows]) * weights[rows, slots, None])
            shares = F.one_hot(places, len(self.experts)).float().mean((0, 1))
            return y, (shares * self.router(x).softmax(-1).mean(0)).sum()
    net = place(Experts())
    x = place(torch.randn(10, 8))

    def loss(step):
        y, balance = net(x)
        return F.mse_loss(y, x.flip(1)) + 0.01 * balance
    return train(loss, net.parameters(), steps=4)
