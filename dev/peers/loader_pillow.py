#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""loader_pillow.py FOLDER WORKERS: photos of FOLDER to normalised random crops of 224 pixels by
Pillow and PyTorch's DataLoader. Prints one JSON line: photos per second, best of two passes. Run
by dev/bench."""
import io
import json
import math
import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

SIDE = 224
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


class Photos(torch.utils.data.Dataset):
    """Every photo four times, read beforehand: reading files is not what is compared."""

    def __init__(self, folder):
        files = [p for p in sorted(Path(folder).rglob("*.jpg")) if "edge" not in p.parts]
        self.files = [p.read_bytes() for p in files]

    def __len__(self):
        return 4 * len(self.files)

    def __getitem__(self, i):
        photo = Image.open(io.BytesIO(self.files[i % len(self.files)])).convert("RGB")
        area = random.uniform(0.08, 1) * photo.width * photo.height
        aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        width = min(photo.width, int(math.sqrt(area * aspect)))
        height = min(photo.height, int(math.sqrt(area / aspect)))
        x, y = random.randint(0, photo.width - width), random.randint(0, photo.height - height)
        crop = photo.resize((SIDE, SIDE), Image.BILINEAR, box=(x, y, x + width, y + height))
        if random.random() < 0.5:
            crop = crop.transpose(Image.FLIP_LEFT_RIGHT)
        values = (np.asarray(crop, np.float32) / 255 - MEAN) / DEVIATION
        return torch.from_numpy(np.ascontiguousarray(values.transpose(2, 0, 1)))


def main():
    photos, workers = Photos(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(photos, 32, num_workers=workers, shuffle=True)
    best = 0
    for _ in range(2):
        begin = time.perf_counter()
        count = sum(len(batch) for batch in loader)
        best = max(best, count / (time.perf_counter() - begin))
    print(json.dumps({"items_per_s": best}))


if __name__ == "__main__":
    main()
