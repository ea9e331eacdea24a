"""Ways to learn: from rewards, by layers, from pairs, to learn."""

import copy

import torch
from torch import nn
from torch.distributions import Bernoulli, Categorical, Normal, kl_divergence
from torch.nn import functional as F

from . import program, train


def returns_of(rewards, discount=0.9):
    found, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + discount * total
        found.insert(0, total)
    found = torch.tensor(found)
    return (found - found.mean()) / (found.std() + 1e-8)


@program()
def reinforce(place):
    policy = place(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2), nn.Softmax(-1)))
    call = place.compiled(policy)
    optimizer = torch.optim.Adam(policy.parameters(), 1e-2, eps=1e-4)
    losses = []
    for states, actions in zip(place(torch.randn(3, 6, 1, 4)), torch.randint(2, (3, 6)).tolist()):
        kept = []
        for state, action in zip(states, actions):
            choices = Categorical(call(state))
            if not 0 <= choices.sample().item() < 2:
                raise ValueError("no action")
            kept.append(choices.log_prob(torch.tensor([action], device=place.device)))
        gains = returns_of([float(a) for a in actions])
        loss = torch.cat([-p * gain for p, gain in zip(kept, gains)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [torch.stack(losses), *policy.parameters()]


@program()
def actor_critic(place):
    body, actor, critic = nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 1)
    net = place(nn.ModuleList((body, actor, critic)))

    def both(x):
        y = F.relu(body(x))
        return F.softmax(actor(y), -1), critic(y)
    call = place.compiled(both)
    states, actions = place(torch.randn(7, 4)), torch.randint(3, (7,)).tolist()
    gains = returns_of([float(a == 1) for a in actions])

    def loss(step):
        of_policy, of_values, entropy = [], [], 0
        for state, action, gain in zip(states, actions, gains):
            p, value = call(state)
            choices = Categorical(p)
            of_policy.append(-choices.log_prob(torch.tensor(action, device=place.device)) * (gain - value.item()))
            of_values.append(F.smooth_l1_loss(value, torch.tensor([gain], device=place.device)))
            entropy = entropy + choices.entropy()
        return torch.stack(of_policy).sum() + torch.stack(of_values).sum() - 0.01 * entropy
    return train(loss, net.parameters(), steps=3)


@program()
def clipped_policy(place):
    """PPO, over several numbers at once."""
    mean, spread, value = nn.Linear(3, 2), nn.Parameter(torch.zeros(2)), nn.Linear(3, 1)
    net = place(nn.ModuleDict({"mean": mean, "value": value}))
    spread = nn.Parameter(place(spread.data))
    x, actions, old, gain = place(torch.randn(10, 3), torch.randn(10, 2), torch.randn(10) - 3, torch.randn(10))

    def loss(step):
        choices = Normal(mean(x), spread.exp())
        ratio = (choices.log_prob(actions).sum(-1) - old).exp()
        of_policy = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        return of_policy + 0.5 * F.mse_loss(value(x).squeeze(-1), gain) - 0.01 * choices.entropy().sum(-1).mean()
    return train(loss, [*net.parameters(), spread])


@program()
def deep_q_learning(place):
    net = place(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)))
    target = copy.deepcopy(net)
    states, actions, rewards, after, ends = place(torch.randn(20, 4), torch.randint(3, (20, 1)), torch.randn(20), torch.randn(20, 4),
                                                  torch.rand(20) < 0.2)

    def loss(step):
        rows = place(torch.randperm(20)[:8])
        values = net(states[rows]).gather(1, actions[rows])
        later = torch.zeros(8, device=place.device)
        with torch.no_grad():
            goes_on = ~ends[rows]
            later[goes_on] = target(after[rows][goes_on]).max(1).values
            for name, p in target.state_dict().items():
                p.copy_(net.state_dict()[name] * 0.1 + p * 0.9)
        return F.smooth_l1_loss(values, (rewards[rows] + 0.9 * later).unsqueeze(1))
    found = train(loss, net.parameters(), optimizer=torch.optim.AdamW(net.parameters(), 1e-2, amsgrad=True, eps=1e-4))
    nn.utils.clip_grad_value_(net.parameters(), 0.01)
    return [*found, *target.parameters(), *(p.grad for p in net.parameters())]


@program()
def forward_forward(place):
    """Each layer learns by itself to tell good from bad."""
    class Layer(nn.Linear):
        def forward(self, x):
            return F.relu(super().forward(x / (x.norm(2, 1, keepdim=True) + 1e-4)))
    layers = [place(Layer(*sizes)) for sizes in ((20, 16), (16, 12))]
    good, bad = place(torch.rand(8, 20), torch.rand(8, 20))
    losses = []
    for layer in layers:
        optimizer = torch.optim.Adam(layer.parameters(), 0.03, eps=1e-4)
        for _ in range(4):
            a, b = layer(good).pow(2).mean(1), layer(bad).pow(2).mean(1)
            loss = torch.log(1 + torch.exp(torch.cat([-a + 0.5, b - 0.5]))).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        good, bad = layer(good).detach(), layer(bad).detach()
    return [torch.stack(losses), good, bad]


@program()
def time_series_with_lbfgs(place):
    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell1, self.cell2, self.head = nn.LSTMCell(1, 6), nn.LSTMCell(6, 6), nn.Linear(6, 1)

        def forward(self, x, more=0):
            h1, c1, h2, c2 = (torch.zeros(x.size(0), 6, dtype=torch.double, device=x.device) for _ in range(4))
            rows = []
            for at in range(x.size(1) + more):
                given = x[:, at:at + 1] if at < x.size(1) else rows[-1]
                h1, c1 = self.cell1(given, (h1, c1))
                h2, c2 = self.cell2(h1, (h2, c2))
                rows.append(self.head(h2))
            return torch.cat(rows, dim=1)
    net = place(Sequence().double())
    call = place.compiled(net)
    waves = place(torch.sin(torch.arange(9.0, dtype=torch.double) + torch.randint(6, (4, 1)) / 2))
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(call(waves[:, :-1]), waves[:, 1:])
        loss.backward()
        losses.append(loss.detach())
        return loss
    for _ in range(2):
        optimizer.step(closure)
    with torch.no_grad():
        return [torch.stack(losses), net(waves[:, :3], more=4)]


@program()
def contrast_of_views(place):
    """SimCLR's loss, and those of triplets and of cosines."""
    net = place(nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8)))
    a, b, kinds = place(torch.randn(6, 10), torch.randn(6, 10), torch.tensor([1.0, -1, 1, 1, -1, 1]))
    call = place.compiled(net)

    def loss(step):
        x, y = call(a), call(b)
        z = F.normalize(torch.cat((x, y)), dim=1)
        near = z @ z.t() / 0.5
        near.fill_diagonal_(float("-inf"))
        pairs = torch.arange(12, device=place.device).roll(6)
        return F.cross_entropy(near, pairs) + F.triplet_margin_loss(x, y, x.roll(1, 0)) + F.cosine_embedding_loss(x, y, kinds)
    return train(loss, net.parameters(), rate=0.01)


@program()
def distillation(place):
    teacher, student = place(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5)), nn.Linear(8, 5))
    x, kinds = place(torch.randn(12, 8), torch.randint(5, (12,)))

    def loss(step):
        with torch.no_grad():
            known = F.log_softmax(teacher(x) / 2, -1)
        y = student(x)
        return F.kl_div(F.log_softmax(y / 2, -1), known, reduction="batchmean", log_target=True) * 4 + F.cross_entropy(y, kinds)
    return train(loss, student.parameters(), optimizer=torch.optim.RMSprop(student.parameters(), 1e-2, eps=1e-4))


@program()
def learning_to_learn(place):
    """MAML: gradients through a step of gradients."""
    net = place(nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)))
    x, y = place(torch.randn(3, 6, 1), torch.randn(3, 6, 1))
    names = [name for name, _ in net.named_parameters()]

    def loss(step):
        total = 0
        for task in range(3):
            fast = dict(net.named_parameters())
            inner = F.mse_loss(torch.func.functional_call(net, fast, x[task, :3]), y[task, :3])
            grads = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
            fast = {name: fast[name] - 0.1 * grad for name, grad in zip(names, grads)}
            total = total + F.mse_loss(torch.func.functional_call(net, fast, x[task, 3:]), y[task, 3:])
        return total / 3
    return train(loss, net.parameters(), steps=4)


@program()
def equations_of_physics(place):
    """A network that solves u'' + u = 0: second derivatives by its input are the loss."""
    net = place(nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 1)))
    x = place(torch.linspace(0, 3, 10)[:, None])

    def loss(step):
        given = x.clone().requires_grad_()
        u = net(given)
        first, = torch.autograd.grad(u, given, torch.ones_like(u), create_graph=True)
        second, = torch.autograd.grad(first, given, torch.ones_like(first), create_graph=True)
        return (second + u).square().mean() + u[0].square().sum() + (first[0] - 1).square().sum()
    return train(loss, net.parameters(), steps=4, rate=0.01)


@program()
def matrix_factorisation(place):
    users, items = nn.Embedding(10, 4), nn.Embedding(12, 4)
    biases = nn.Embedding(10, 1), nn.Embedding(12, 1)
    net = place(nn.ModuleList((users, items, *biases)))
    u, i, rating = place(torch.randint(10, (16,)), torch.randint(12, (16,)), torch.rand(16) * 5)

    def predicted(u, i):
        return (users(u) * items(i)).sum(1) + biases[0](u).squeeze() + biases[1](i).squeeze()
    call = place.compiled(predicted)
    return train(lambda step: F.mse_loss(call(u, i), rating), net.parameters(),
                 optimizer=torch.optim.Adagrad(net.parameters(), 0.1, weight_decay=1e-3))


@program()
def ordinary_differential_equation(place):
    """A neural ODE by Runge and Kutta's steps, with a gradient of our own for its clamp."""
    class Clamp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(-2, 2)

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return torch.where(x.abs() > 2, 0.1 * grad, grad)
    net = place(nn.Sequential(nn.Linear(2, 12), nn.Softplus(), nn.Linear(12, 2)))
    x, target = place(torch.randn(5, 2), torch.randn(5, 2))

    def loss(step):
        y, h = x, 0.25
        for _ in range(4):
            a = net(y)
            b = net(y + h / 2 * a)
            c = net(y + h / 2 * b)
            y = y + h / 6 * (a + 2 * b + 2 * c + net(y + h * c))
        return (Clamp.apply(y) - target).abs().mean()
    return train(loss, net.parameters())


@program(by_cpu=("_standard_gamma", "_sample_dirichlet"))
def distributions(place):
    found = []
    p = place(torch.rand(6)).requires_grad_()
    q = place(torch.rand(6) + 0.5).requires_grad_()
    x = place(torch.rand(6))
    loss = kl_divergence(Normal(p, q), Normal(x, q + 1)).sum() + Bernoulli(p.sigmoid()).log_prob((x > 0.5).float()).sum()
    for one in (torch.distributions.Beta(q, q + 1), torch.distributions.Gamma(q, q), torch.distributions.Laplace(p, q),
                torch.distributions.Exponential(q), torch.distributions.LogNormal(p, q), torch.distributions.Gumbel(p, q),
                torch.distributions.StudentT(q + 2), torch.distributions.Dirichlet(q[None].expand(6, -1))):
        value = x if one.event_shape == () else (q / q.sum()).detach()
        loss = loss + one.log_prob(value).sum() + one.mean.sum()
        found.append(torch.isfinite(one.sample()).all())
    loss.backward()
    wide = torch.distributions.Normal(place(torch.zeros(())), 1).sample((4000,))
    found += [(wide.mean().abs() < 0.1), (wide.std() - 1).abs() < 0.1]
    return [loss, p.grad, q.grad, *found]
