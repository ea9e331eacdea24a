"""What PyTorch offers around models: functions of functions, hooks, precisions, files, loaders."""

import io

import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap
from torch.nn import functional as F
from torch.nn.utils import parametrizations, parametrize
from torch.optim import swa_utils
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from . import program, train


def small():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def rows(place, count=10):
    return place(torch.randn(count, 6), torch.randint(3, (count,)))


@program()
def functions_of_functions(place):
    net = place(small())
    x, kinds = rows(place)
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(parameters, x, kind):
        return F.cross_entropy(functional_call(net, parameters, x[None]), kind[None])
    each = vmap(grad(loss), (None, 0, 0))(parameters, x, kinds)
    call = lambda x: functional_call(net, parameters, x)  # noqa: E731
    tangent = jvp(call, (x,), (torch.ones_like(x),))[1]
    value, back = vjp(call, x)
    return [*each.values(), vmap(jacrev(call))(x), vmap(jacfwd(call))(x), tangent, back(torch.ones_like(value))[0],
            hessian(lambda x: call(x).square().sum())(x[0])]


@program()
def ensemble_of_models(place):
    nets = [place(small()) for _ in range(3)]
    parameters, buffers = stack_module_state(nets)
    x, kinds = rows(place)

    def loss(parameters, buffers):
        return F.cross_entropy(functional_call(nets[0], (parameters, buffers), x), kinds)
    losses = []
    for _ in range(4):
        grads, found = vmap(torch.func.grad_and_value(loss), in_dims=(0, 0))(parameters, buffers)
        parameters = {name: p.detach() - 0.1 * grads[name] for name, p in parameters.items()}
        losses.append(found)
    return [torch.stack(losses), *parameters.values()]


@program()
def parametrised_weights(place):
    layers = [parametrizations.weight_norm(nn.Linear(6, 8)), nn.ReLU(), parametrizations.spectral_norm(nn.Linear(8, 8)), nn.ReLU(),
              nn.Linear(8, 3)]

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)
    inner = nn.Linear(8, 8)
    parametrize.register_parametrization(inner, "weight", Symmetric())
    net = place(nn.Sequential(*layers[:4], inner, *layers[4:]))
    x, kinds = rows(place)
    return train(lambda i: F.cross_entropy(net(x), kinds), net.parameters())


@program(by_cpu=("linalg_matrix_exp",))
def orthogonal_weights(place):
    layer = parametrizations.orthogonal(nn.Linear(6, 6), orthogonal_map="matrix_exp")
    net = place(nn.Sequential(layer, nn.ReLU(), nn.Linear(6, 3)))
    x, kinds = rows(place)
    found = train(lambda i: F.cross_entropy(net(x), kinds), net.parameters(), steps=3)
    return [*found, layer.weight @ layer.weight.t()]


@program()
def old_norms_of_weights(place):
    net = place(nn.Sequential(nn.utils.weight_norm(nn.Conv1d(6, 4, 1)), nn.Flatten(), nn.utils.spectral_norm(nn.Linear(4, 3))))
    x, kinds = rows(place)
    return train(lambda i: F.cross_entropy(net(x[:, :, None]), kinds), net.parameters())


@program()
def checkpoints(place):
    net = place(nn.Sequential(small(), nn.ReLU(), nn.Linear(3, 6), small()))
    x, kinds = rows(place)

    def loss(step):
        y = checkpoint(net[:2], x, use_reentrant=False)
        y = checkpoint_sequential(net[2:], 2, y, use_reentrant=step % 2 == 1)
        return F.cross_entropy(y, kinds)
    return train(loss, net.parameters(), steps=4)


@program(tolerance=3e-2)
def mixed_precision(place):
    """bfloat16 by autocast, gradients of several batches, a scale of losses that finds infinities."""
    net = place(nn.Sequential(nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)))
    x, kinds = rows(place, 12)
    scaler = torch.amp.GradScaler(place.device, init_scale=64.0, growth_interval=2)
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    losses, scales = [], []
    for step in range(4):
        optimizer.zero_grad(set_to_none=True)
        for part in range(3):
            at = slice(4 * part, 4 * part + 4)
            with torch.autocast(place.device, dtype=torch.bfloat16):
                loss = F.cross_entropy(net(x[at, None]), kinds[at]) / 3
            scaler.scale(loss * (float("inf") if step == 2 else 1)).backward()
            losses.append(loss.detach())
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return [torch.stack(losses), torch.tensor(scales), *net.parameters()]


@program(tolerance=3e-2)
def half_precision(place):
    net = place(nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))).half()
    x, kinds = rows(place)
    return train(lambda i: F.cross_entropy(net(x.half()).float(), kinds), net.parameters(), rate=0.01)


@program()
def attention_with_masks(place):
    attention = place(nn.MultiheadAttention(8, 2, kdim=6, vdim=4, add_bias_kv=True, batch_first=True))
    q, k, v = place(torch.randn(3, 5, 8), torch.randn(3, 7, 6), torch.randn(3, 7, 4))
    padding = place(torch.arange(7) >= torch.tensor([[7], [4], [2]]))
    mask = place(torch.zeros(5, 7).masked_fill(torch.rand(5, 7) < 0.2, -1e9))

    def both(q, k, v):
        y, weights = attention(q, k, v, key_padding_mask=padding, attn_mask=mask)
        heads = y.unflatten(-1, (2, 4)).transpose(1, 2)
        soft = F.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask[:, :5], scale=0.3)
        hard = F.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask[:, :5] == 0)
        few = F.scaled_dot_product_attention(heads, heads[:, :1], heads[:, :1], is_causal=True, enable_gqa=True)
        return y.square().mean() + weights.square().sum() + (soft * hard * few).sum()
    call = place.compiled(both)
    return train(lambda i: call(q, k, v), attention.parameters(), rate=1e-3)


@program()
def averaged_models(place):
    net = place(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)))
    x, kinds = rows(place, 12)
    mean = swa_utils.AveragedModel(net)
    moving = swa_utils.AveragedModel(net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    schedule = swa_utils.SWALR(optimizer, 0.02, anneal_epochs=3)
    for _ in range(4):
        optimizer.zero_grad()
        F.cross_entropy(net(x), kinds).backward()
        optimizer.step()
        mean.update_parameters(net)
        moving.update_parameters(net)
        schedule.step()
    swa_utils.update_bn([x[:6], x[6:]], mean)
    return [*mean.parameters(), *mean.buffers(), *moving.parameters(), mean.eval()(x), optimizer.param_groups[0]["lr"]]


@program()
def files(place):
    """A run that is stopped and goes on."""
    def begun():
        net = place(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)))
        optimizer = torch.optim.Adam(net.parameters(), 1e-2, eps=1e-4)
        return net, optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=6)
    x, kinds = rows(place)
    net, optimizer, schedule = begun()

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            F.cross_entropy(net(x), kinds).backward()
            optimizer.step()
            schedule.step()
    steps(2)
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(),
                "rows": x[2:5].t(), "random": torch.get_rng_state()}, file)
    steps(3)
    want = [p.detach().clone() for p in net.parameters()]
    net, optimizer, schedule = begun()
    for where in (place.device, "cpu"):
        file.seek(0)
        kept = torch.load(file, map_location=where, weights_only=True)
    net.load_state_dict(kept["net"])
    optimizer.load_state_dict(kept["optimizer"])
    schedule.load_state_dict(kept["schedule"])
    steps(3)
    return [*want, *net.parameters(), kept["rows"], *(state["exp_avg"] for state in optimizer.state.values())]


@program()
def loaders(place):
    data = torch.utils.data.TensorDataset(torch.randn(21, 6), torch.randint(3, (21,)))
    order = torch.Generator().manual_seed(3)
    loader = torch.utils.data.DataLoader(data, 8, shuffle=True, generator=order, pin_memory=place.device != "cpu")
    net = place(small())
    call = place.compiled(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, weight_decay=1e-3, nesterov=True, momentum=0.9)
    losses, right = [], 0
    for _ in range(2):
        for x, kinds in loader:
            x, kinds = x.to(place.device, non_blocking=True), kinds.to(place.device, non_blocking=True)
            y = call(x)
            loss = F.cross_entropy(y, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            right += y.argmax(1).eq(kinds).sum().item()
    return [torch.tensor(losses), right, *net.parameters()]


@program()
def hooks(place):
    net = place(small())
    x, kinds = rows(place)
    seen = []

    def twice(p):
        p.grad.mul_(2)
    handles = [net[0].register_forward_pre_hook(lambda module, given: (given[0] * 2,)),
               net[1].register_forward_hook(lambda module, given, y: y + given[0].detach() * 0.1),
               net[2].register_full_backward_hook(lambda module, inner, outer: seen.append(outer[0].norm()) or (inner[0] * 0.5,)),
               net[0].weight.register_hook(lambda grad: grad.clamp(-0.01, 0.01)),
               net[2].bias.register_post_accumulate_grad_hook(twice)]
    found = train(lambda i: F.cross_entropy(net(x), kinds), net.parameters(), steps=3)
    for handle in handles:
        handle.remove()
    with torch.autograd.graph.save_on_cpu():
        y = net(x).square().sum()
    y.backward()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.shape) or t.half(), lambda t: t.float()):
        z = net(x).sum()
    z.backward()
    return [*found, torch.stack(seen), *(p.grad for p in net.parameters()), net(x)]


@program()
def writes_to_views(place):
    x = place(torch.randn(4, 6)).requires_grad_()
    y = x.clone()
    y[:, 1:3] *= 2
    y[1].add_(y[0])
    y.t()[::2, 1:] = y.t()[1::2, :-1].detach()
    y.view(2, 2, 6).select(1, 0).mul_(x[:2]).clamp_(-1, 1)
    y.diagonal().zero_()
    y[y > 1.5] = 0.5
    y.as_strided((3, 2), (6, 1), 2).sigmoid_()
    a, b = y.chunk(2, dim=1)
    z = torch.cat((a.relu(), b.tanh()), 0)
    z.index_put_((torch.tensor([0, 2], device=place.device),), x[:2, :3], accumulate=True)
    z.masked_fill_(z < -0.5, 0.1).scatter_(1, torch.zeros(8, 1, dtype=torch.long, device=place.device), 0.25)
    z.square().sum().backward()
    with torch.no_grad():
        w = place(torch.zeros(5, 5))
        w[torch.arange(5, device=place.device), torch.arange(5, device=place.device).flip(0)] = 1
        w[1:4, 1:4] += 3
        w[..., -1] = w[..., 0].clone()
        w.swapaxes_(0, 1).unsqueeze_(0).squeeze_(0)
    return [y, z, x.grad, w]


@program(by_cpu=("linalg_", "_linalg_", "_cholesky_solve_helper"))
def linear_algebra(place):
    """A Gaussian process, whitening, least squares: factorisations and their gradients."""
    x = place(torch.randn(8, 3))
    scale = place(torch.tensor(0.7)).requires_grad_()
    y = place(torch.randn(8))
    found = []
    for _ in range(2):
        apart = (x[:, None] - x).square().sum(-1)
        k = torch.exp(-apart / (2 * scale ** 2)) + 0.1 * torch.eye(8, device=place.device)
        factor = torch.linalg.cholesky(k)
        alpha = torch.cholesky_solve(y[:, None], factor)
        loss = 0.5 * y @ alpha.squeeze() + factor.diagonal().log().sum()
        slope, = torch.autograd.grad(loss, scale)
        with torch.no_grad():
            scale -= 0.05 * slope
        found += [loss, slope]
    square = (x.t() @ x).requires_grad_()
    values, vectors = torch.linalg.eigh(square)
    q, r = torch.linalg.qr(x)
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    total = (vectors / values.sqrt() @ vectors.t()).sum() + torch.linalg.slogdet(square)[1] + torch.linalg.inv(square).sum() + \
        torch.linalg.solve(square, x[0]).sum() + torch.linalg.det(square) * 1e-3 + torch.linalg.matrix_norm(square) + \
        torch.trace(torch.matrix_exp(square * 1e-2))
    total.backward()
    return [*found, total, square.grad, q @ r, (u * s) @ v, torch.linalg.lstsq(x, y[:, None]).solution, torch.linalg.pinv(x),
            torch.linalg.matrix_rank(x), torch.linalg.cond(square), torch.linalg.multi_dot((x, square, x.t()))]


@program()
def losses(place):
    x, y = place(torch.randn(6, 4).requires_grad_(), torch.randn(6, 4))
    x = x.detach().requires_grad_()
    kinds, signs = place(torch.randint(4, (6,)), torch.randint(0, 2, (6, 4)) * 2.0 - 1)
    total = sum((
        F.l1_loss(x, y), F.mse_loss(x, y), F.huber_loss(x, y, delta=0.5), F.smooth_l1_loss(x, y), F.soft_margin_loss(x, signs),
        F.hinge_embedding_loss(x, signs), F.poisson_nll_loss(x, y.abs()), F.gaussian_nll_loss(x, y, y.abs() + 0.1),
        F.multilabel_soft_margin_loss(x, (signs > 0).float()), F.margin_ranking_loss(x, y, signs),
        F.cross_entropy(x, kinds, ignore_index=2), F.cross_entropy(x, y.softmax(-1)), F.nll_loss(x.log_softmax(1), kinds),
        F.binary_cross_entropy_with_logits(x, (signs > 0).float(), pos_weight=y.abs()[0]), F.kl_div(x.log_softmax(1), y.softmax(1)),
        F.triplet_margin_with_distance_loss(x, y, y.flip(0), distance_function=nn.CosineSimilarity())))
    total.backward()
    return [total, x.grad]


@program()
def activations(place):
    x = place(torch.randn(5, 8)).requires_grad_()
    slopes = place(torch.rand(8)).requires_grad_()
    total = 0
    for call in (F.relu, F.relu6, F.elu, F.selu, F.celu, F.gelu, F.silu, F.mish, F.softplus, F.softsign, F.tanhshrink, F.hardtanh,
                 F.hardshrink, F.softshrink, F.logsigmoid, F.hardsigmoid, F.hardswish, F.leaky_relu, F.tanh, F.sigmoid, F.glu,
                 lambda x: F.prelu(x, slopes), lambda x: F.threshold(x, 0.1, -1), lambda x: F.softmin(x, 1),
                 lambda x: F.rrelu(x, training=False),
                 lambda x: F.local_response_norm(x[None], 3), lambda x: F.normalize(x), lambda x: F.pairwise_distance(x, x + slopes),
                 lambda x: F.cosine_similarity(x, slopes[None]), lambda x: F.channel_shuffle(x[None, :, :, None].transpose(1, 2), 2),
                 lambda x: F.fold(F.unfold(x.view(1, 1, 5, 8), 3), (5, 8), 3)):
        total = total + call(x).square().mean()
    total.backward()
    return [total, x.grad, slopes.grad]
