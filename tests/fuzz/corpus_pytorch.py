#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes checkpoints of PyTorch to tests/fuzz/corpus/pytorch (needs torch). They are the seeds of
the fuzz target and the input of tests/unit/test_pytorch.c, and are kept in the repository, so run
this again only to add new kinds of files."""
import argparse
import warnings
import zipfile
from collections import OrderedDict
from pathlib import Path

import torch

TOP = Path(__file__).resolve().parent / "corpus" / "pytorch"
TOP.mkdir(parents=True, exist_ok=True)
warnings.simplefilter("ignore")  # torch.jit is deprecated


def save(name, what, **options):
    torch.save(what, TOP / name, **options)


def weights(offset=0):
    return OrderedDict([("fc.weight", torch.arange(6.).reshape(2, 3) + offset),
                        ("fc.bias", torch.arange(2.) - offset)])


TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
         "i64": torch.int64, "i32": torch.int32, "u8": torch.uint8, "bool": torch.bool}
save("types.pt", {name: torch.arange(6).reshape(2, 3).to(t) for name, t in TYPES.items()})

base = torch.arange(24.).reshape(4, 6)
save("views.pt", {
    "whole": base, "transposed": base.t(), "part": base[1:3, 2:5], "column": base[:, 1],
    "steps": base[::2, ::3], "expanded": torch.arange(3.).expand(2, 3), "scalar": torch.tensor(7.),
    "empty": torch.zeros(0, 3), "parameter": torch.nn.Parameter(base[0])})

save("training.pt", {
    "epoch": 3, "lr": 0.125, "done": False, "state_dict": weights(),
    "optimizer": {"state": {0: {"step": torch.tensor(5.), "exp_avg": torch.zeros(2, 3)}},
                  "param_groups": [{"lr": 0.1, "betas": (0.9, 0.999), "params": [0, 2**40]}]},
    "args": argparse.Namespace(depth=50, name="x"), "best": None, "tags": {"a", "b"}})
save("nested.pt", {"encoder": {"a": base[0], "layers": [base[1], base[2]]}, 3: base[3],
                   "decoder": weights()})
for protocol in (4, 5):
    save(f"protocol{protocol}.pt", weights(protocol), pickle_protocol=protocol)
save("data_parallel.pt", {f"module.{k}": v for k, v in weights().items()})
save("int8.pt", {"x": torch.zeros(3, dtype=torch.int8)})
save("sparse.pt", {"x": torch.eye(3).to_sparse()})
save("module.pt", torch.nn.Linear(3, 2))
save("legacy.pt", weights(), _use_new_zipfile_serialization=False)
torch.jit.script(torch.nn.Linear(3, 2)).save(TOP / "script.pt")
for name in ("training", "views"):  # for the fuzzer: pickles alone
    with zipfile.ZipFile(TOP / f"{name}.pt") as archive:
        (TOP / f"{name}.pkl").write_bytes(archive.read(f"{name}/data.pkl"))
