#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of test_graph.c, made by PyTorch in f64: GCN, GAT and MeshGraphNet, written with
index_select and index_add from their formulas.

python3 graph.py > graph.inc
Needs torch.
"""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from hashed import emit, fill, uniform

N, I, G, C = 6, 3, 2, 4
# The same list is in test_graph.c: (source, target). Node 5 has no edges to it.
EDGES = torch.tensor([[0, 1], [1, 0], [2, 1], [3, 1], [4, 2], [5, 2], [5, 0], [2, 4], [0, 3],
                      [4, 1]])
SOURCE, TARGET = EDGES[:, 0], EDGES[:, 1]


class GraphConv(nn.Module):
    """D^-1/2 (A + I) D^-1/2 x W^T + b with a matrix of all pairs of nodes."""

    def __init__(self, i, o):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(o))
        self.lin = nn.Linear(i, o, bias=False)

    def forward(self, x, weight):
        a = torch.eye(N, dtype=x.dtype)
        a = a.index_put((TARGET, SOURCE), weight, accumulate=True)
        d = a.sum(1).rsqrt()
        return d[:, None] * a * d[None, :] @ self.lin(x) + self.bias


class GraphAttention(nn.Module):
    def __init__(self, i, o, heads, mean):
        super().__init__()
        self.heads, self.o, self.mean = heads, o, mean
        self.att_src = nn.Parameter(torch.zeros(1, heads, o))
        self.att_dst = nn.Parameter(torch.zeros(1, heads, o))
        self.bias = nn.Parameter(torch.zeros(o if mean else heads * o))
        self.lin = nn.Linear(i, heads * o, bias=False)

    def forward(self, x, weight):
        h = self.lin(x).view(N, self.heads, self.o)
        loops = torch.arange(N)
        s, t = torch.cat([SOURCE, loops]), torch.cat([TARGET, loops])
        e = F.leaky_relu((h * self.att_src).sum(-1)[s] + (h * self.att_dst).sum(-1)[t], 0.2).exp()
        total = torch.zeros(N, self.heads, dtype=x.dtype).index_add(0, t, e)
        y = torch.zeros(N, self.heads, self.o, dtype=x.dtype)
        y = y.index_add(0, t, (e / total[t])[:, :, None] * h[s])
        return (y.mean(1) if self.mean else y.flatten(1)) + self.bias


class Layers(nn.Module):
    def __init__(self, layers, act):
        super().__init__()
        self.convs, self.act = nn.ModuleList(layers), act

    def forward(self, x, weight):
        for conv in self.convs[:-1]:
            x = self.act(conv(x, weight))
        return self.convs[-1](x, weight)


def mlp(i, hidden, o, norm):
    parts = [nn.Linear(i, hidden), nn.ReLU(), nn.Linear(hidden, o)]
    return nn.Sequential(*parts, *([nn.LayerNorm(o)] if norm else []))


class Step(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.edge = mlp(3 * hidden, hidden, hidden, True)
        self.node = mlp(2 * hidden, hidden, hidden, True)

    def forward(self, x, e):
        e = e + self.edge(torch.cat([x[SOURCE], x[TARGET], e], 1))
        total = torch.zeros_like(x).index_add(0, TARGET, e)
        return x + self.node(torch.cat([x, total], 1)), e


class MeshGraphNet(nn.Module):
    def __init__(self, hidden, steps):
        super().__init__()
        self.node_encoder, self.edge_encoder = mlp(I, hidden, hidden, True), mlp(G, hidden, hidden,
                                                                                True)
        self.steps = nn.ModuleList(Step(hidden) for _ in range(steps))
        self.decoder = mlp(hidden, hidden, C, False)

    def forward(self, x, e):
        x, e = self.node_encoder(x), self.edge_encoder(e)
        for step in self.steps:
            x, e = step(x, e)
        return self.decoder(x)


def leaf(name, *shape):
    v = uniform(name, int(np.prod(shape))).astype(np.float32).reshape(shape)
    return torch.from_numpy(v.astype(np.float64))


def weighted(t, name):
    return (t * torch.from_numpy(uniform(name, t.numel()).reshape(t.shape))).sum()


def run(name, net, e):
    fill(net)
    net.double()
    x = leaf("x", N, I).requires_grad_()
    e = e.requires_grad_()
    y = net(x, e)
    weighted(y, "weight").backward()
    emit(f"{name}_results", y.detach().flatten())
    emit(f"{name}_inputs", torch.cat([t.grad.flatten() for t in (x, e) if t.grad is not None]))
    # of each parameter's gradient: the sum of its elements times hashed numbers, and its norm
    emit(f"{name}_params", [v for n, p in net.named_parameters()
                            for v in (weighted(p.grad, "u" + n), p.grad.norm())])


print("/* Made by graph.py; do not edit. */")
run("gcn", Layers([GraphConv(I, 5), GraphConv(5, C)], F.relu), torch.ones(len(EDGES)).double())
run("gcn_weights", Layers([GraphConv(I, C)], F.relu), leaf("e", len(EDGES)) + 1.5)
run("gat", Layers([GraphAttention(I, 2, 3, False), GraphAttention(6, C, 1, True)], F.elu),
    leaf("e", len(EDGES)))
run("meshgraphnet", MeshGraphNet(5, 2), leaf("e", len(EDGES), G))
