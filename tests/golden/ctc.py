#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of test_ctc.c, made by PyTorch in f64: losses of samples with different lengths,
repeated labels and no labels at all, and the gradient of the logits.

python3 ctc.py > ctc.inc
Needs torch.
"""
import numpy as np
import torch
from torch.nn.functional import ctc_loss, log_softmax

from hashed import emit, uniform

# The same numbers are in test_ctc.c.
T, N, V = 23, 5, 7
LABELS = torch.tensor([[1, 1, 2, 3, 6, 6], [4, 5, 1, 0, 0, 0], [2, 2, 2, 2, 0, 0], [0] * 6,
                       [6, 5, 4, 3, 2, 1]])
LABEL_LENGTHS = torch.tensor([6, 3, 4, 0, 6])
INPUT_LENGTHS = torch.tensor([23, 17, 9, 5, 6])


def losses(x, labels, reduction, **options):
    return ctc_loss(log_softmax(x, 2), labels, INPUT_LENGTHS, LABEL_LENGTHS, reduction=reduction,
                    **options)


print("/* Made by ctc.py; do not edit. */")
logits = (3 * uniform("x", T * N * V)).astype(np.float32).reshape(T, N, V)
for blank in 0, V - 1:
    # with the last class as the blank, labels are one less
    labels = (LABELS - int(blank > 0)).clamp(min=0)
    x = torch.from_numpy(logits.astype(np.float64)).requires_grad_()
    emit(f"each_{blank}", losses(x, labels, "none", blank=blank))
    mean = losses(x, labels, "mean", blank=blank)
    emit(f"mean_{blank}", [mean])
    mean.backward()
    emit(f"gradient_{blank}", x.grad.flatten())
