#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A typical program with types, for `mypy --strict`: it must pass without a remark. The lines with
`type: ignore` are wrong on purpose, and mypy must notice. It also runs."""
from __future__ import annotations

import numpy as np
import numpy.typing as npt

import catena as ct


class Net(ct.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = ct.nn.Linear(4, width)
        self.norm = ct.nn.LayerNorm(width)
        self.last = ct.nn.Linear(width, 2, bias=False, weight={"kind": "normal", "std": 0.1})
        self.scale = ct.nn.parameter((1,), init=1.0)

    def forward(self, x: ct.Tensor) -> ct.Tensor:
        h = self.norm(ct.relu(self.first(x)))
        return self.last(ct.dropout(h, 0.1)) * self.scale


class Samples:
    def __len__(self) -> int:
        return 32

    def __getitem__(self, i: int) -> tuple[npt.NDArray[np.float32], int]:
        return np.full(4, i, np.float32), i % 2


def train(net: Net, epochs: int) -> float:
    opt = ct.optim.AdamW(net.parameters(), lr=0.01, decay=0.0)
    opt.schedule("cosine", steps=100)
    loader = ct.data.Loader(Samples(), batch=8, threads=1, drop_last=True)
    last = 0.0
    for _ in range(epochs):
        for x, t in loader:
            with ct.step():
                y: ct.Tensor = net(x)
                loss = ct.softmax_cross_entropy(y, t) + (y * y).mean() * 1e-4
                opt.backward(loss)
                opt.step()
            last = loss.item()
    return last


def main() -> None:
    net = Net(8)
    last = train(net, 2)
    values, indices = ct.topk(net(np.zeros((3, 4), np.float32)), 1)
    shape: tuple[int, ...] = values[0].shape
    array: npt.NDArray[np.float32] = indices.numpy()
    names: list[str] = [name for name, _ in net.named_parameters()]
    with ct.evaluation(), ct.no_grad():
        total = float(ct.sum(values, axis=(0, 1)))
    x = ct.Tensor(np.zeros((1, 3, 8, 8), np.float32))
    picture = ct.conv(x, np.ones((2, 3, 3, 3), np.float32), pad=1)
    print(last, shape, array, names, total, picture.shape, ct.zoo.make("lenet5"))
    try:
        ct.relu("text")  # type: ignore[arg-type]
    except TypeError:
        pass
    try:
        ct.mean_squared_error(x, x, reduction="average")  # type: ignore[arg-type]
    except ValueError:
        pass


if __name__ == "__main__":
    main()
