"""Graphs, clouds of points, sets."""

import torch
from torch import nn
from torch.nn import functional as F

from . import program, train

NODES, EDGES = 12, 30


def graph(place):
    edges = torch.randint(NODES, (2, EDGES))
    dense = torch.eye(NODES)
    dense[edges[0], edges[1]] = dense[edges[1], edges[0]] = 1
    return place(torch.rand(NODES, 6), edges, dense, torch.randint(3, (NODES,)))


@program()
def graph_convolutions(place):
    x, edges, dense, kinds = graph(place)
    root = dense.sum(1).rsqrt()
    shares = root[:, None] * dense * root
    first, second = place(nn.Linear(6, 8, bias=False), nn.Linear(8, 3, bias=False))
    known = torch.arange(NODES, device=place.device) < 6
    call = place.compiled(lambda x: shares @ second(F.relu(shares @ first(x))))

    def loss(step):
        return F.nll_loss(F.log_softmax(call(x), 1)[known], kinds[known])
    return train(loss, [*first.parameters(), *second.parameters()])


@program()
def graph_attention(place):
    x, edges, dense, kinds = graph(place)
    weight, scores = nn.Linear(6, 16, bias=False), nn.Parameter(torch.randn(2, 8, 2))
    head = nn.Linear(16, 3)
    weight, head, scores = place(weight), place(head), nn.Parameter(place(scores.data))

    def attend(x):
        h = weight(x).view(-1, 2, 8)
        e = torch.einsum("nhd,hdk->nhk", h, scores)
        e = F.leaky_relu(e[:, None, :, 0] + e[None, :, :, 1], 0.2)
        a = torch.where(dense[..., None] > 0, e, torch.full_like(e, -9e15)).softmax(1)
        return head(F.elu(torch.einsum("nmh,mhd->nhd", a, h).flatten(1)))
    call = place.compiled(attend)
    return train(lambda i: F.cross_entropy(call(x), kinds), [*weight.parameters(), *head.parameters(), scores])


@program()
def messages_along_edges(place):
    """What a layer of a graph's library does: gather, a softmax over each node's edges, add where they end."""
    x, edges, dense, kinds = graph(place)
    net = place(nn.ModuleList((nn.Linear(12, 8), nn.Linear(8, 1), nn.GRUCell(8, 6), nn.Linear(6, 3))))

    def step(x):
        begin, end = edges
        messages = torch.tanh(net[0](torch.cat((x[begin], x[end]), 1)))
        score = net[1](messages).squeeze(1)
        top = torch.full((NODES,), -1e9, device=x.device).scatter_reduce(0, end, score, "amax")
        score = (score - top[end]).exp()
        total = torch.zeros(NODES, device=x.device).scatter_add(0, end, score)
        given = torch.zeros(NODES, 8, device=x.device).index_add(0, end, messages * (score / total[end])[:, None])
        return net[2](given, x)

    def loss(i):
        y = step(step(x))
        pooled = torch.zeros(2, 6, device=x.device).scatter_reduce(
            0, (torch.arange(NODES, device=x.device) // 6)[:, None].expand(-1, 6), y, "mean", include_self=False)
        return F.cross_entropy(net[3](y), kinds) + pooled.square().mean()
    return train(loss, net.parameters())


@program()
def cloud_of_points(place):
    """PointNet, with the nearest neighbours of a dynamic graph."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.turn = nn.Sequential(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU())
            self.square, self.edges = nn.Linear(8, 9), nn.Conv2d(6, 8, 1)
            self.head = nn.Linear(16, 4)

        def forward(self, x):
            turn = self.square(self.turn(x).max(2).values).view(-1, 3, 3) + torch.eye(3, device=x.device)
            x = torch.bmm(turn, x)
            points = x.transpose(1, 2)
            near = torch.cdist(points.detach(), points.detach()).topk(4, largest=False).indices
            rows = torch.arange(len(x), device=x.device)[:, None, None]
            around = points[rows, near]
            edges = torch.cat((around - points[:, :, None], points[:, :, None].expand_as(around)), -1).permute(0, 3, 1, 2)
            y = F.leaky_relu(self.edges(edges), 0.2).max(-1).values
            return self.head(torch.cat((y.max(-1).values, y.mean(-1)), 1))
    net = place(Net())
    x, kinds = place(torch.randn(3, 3, 10), torch.randint(4, (3,)))
    return train(lambda i: F.cross_entropy(net(x), kinds), net.parameters(), steps=4)


@program()
def pools_of_clusters(place):
    """Points fall into cells of a grid, whose numbers `unique` closes up; cells have the mean of their points, and edges between cells stay once."""
    points, edges = place(torch.rand(12, 2), torch.randint(0, 12, (2, 30)))
    first, last = place(nn.Linear(2, 8), nn.Linear(8, 1))
    cells = (points * 3).long()
    _, cluster, count = torch.unique(cells[:, 0] * 3 + cells[:, 1], return_inverse=True, return_counts=True)
    ends = cluster[edges]
    apart = ends[:, ends[0] != ends[1]]
    pairs, places_of_edges = torch.unique(apart[0] * len(count) + apart[1], return_inverse=True)
    source, target = pairs // len(count), pairs % len(count)
    weights = torch.zeros(len(pairs), device=points.device).index_add_(0, places_of_edges, torch.ones(apart.shape[1], device=points.device))

    def loss(step):
        h = first(points).relu()
        h = torch.zeros(len(count), 8, device=h.device).index_add_(0, cluster, h) / count[:, None]
        h = h.index_add(0, target, h[source] * weights[:, None])
        return (last(h).squeeze(1) - count).square().mean()
    return [pairs, weights, *train(loss, [*first.parameters(), *last.parameters()], rate=0.01)]


@program()
def set_prediction(place):
    """As DETR: queries attend to a picture; each target gets a query of its own, greedily."""
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, 32, 0.0, batch_first=True), 2)
    net = nn.ModuleList((nn.Conv2d(3, 16, 4, 4), decoder, nn.Linear(16, 4), nn.Linear(16, 4)))
    queries, places = nn.Parameter(torch.randn(5, 16)), nn.Parameter(torch.randn(1, 9, 16))
    net, queries, places = place(net), nn.Parameter(place(queries.data)), nn.Parameter(place(places.data))
    x, boxes, kinds = place(torch.rand(2, 3, 12, 12), torch.rand(2, 3, 4), torch.randint(3, (2, 3)))

    def forward(x):
        memory = net[0](x).flatten(2).transpose(1, 2) + places
        y = net[1](queries.expand(len(x), -1, -1), memory)
        return net[2](y), net[3](y).sigmoid()
    call = place.compiled(forward)

    def loss(step):
        scores, found = call(x)
        total = 0
        for row in range(2):
            cost = torch.cdist(found[row], boxes[row], p=1) - scores[row].softmax(-1)[:, kinds[row]]
            cost, chosen = cost.detach().clone(), []
            for target in range(3):
                chosen.append(int(cost[:, target].argmin()))
                cost[chosen[-1]] = float("inf")
            wanted = torch.full((5,), 3, device=x.device)
            wanted[chosen] = kinds[row]
            weights = torch.tensor([1.0, 1, 1, 0.1], device=x.device)
            total = total + F.cross_entropy(scores[row], wanted, weights) + F.l1_loss(found[row][chosen], boxes[row])
        return total
    return train(loss, [*net.parameters(), queries, places], steps=3, rate=0.02)
