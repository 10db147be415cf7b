#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed files of the fuzz targets to tests/fuzz/corpus (needs NumPy and Pillow). They are
kept in the repository, so run this again only to add new kinds of files."""
import gzip
import io
import json
import struct
import tarfile
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

TOP = Path(__file__).resolve().parent / "corpus"
RNG = np.random.default_rng(1)


def put(target, name, data):
    folder = TOP / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def picture(mode="RGB", size=(24, 17), kind="JPEG", **options):
    channels = {"L": 1, "P": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4, "I;16": 1}[mode]
    if mode == "I;16":
        image = Image.fromarray(RNG.integers(0, 65535, size[::-1], dtype=np.uint16))
    else:
        shape = size[::-1] + ((channels,) if channels > 1 else ())
        smooth = np.cumsum(RNG.integers(-9, 10, shape), axis=1) + 128
        array = np.clip(smooth, 0, 255).astype(np.uint8)
        image = Image.fromarray(array, "L" if mode == "P" else mode)
        image = image.convert("P") if mode == "P" else image
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def images():
    photos = {
        "420.jpg": {"subsampling": 2},
        "444.jpg": {"subsampling": 0, "quality": 30},
        "progressive.jpg": {"progressive": True},
        "gray.jpg": {"mode": "L"},
        "cmyk.jpg": {"mode": "CMYK"},
        "restart.jpg": {"restart_marker_blocks": 1},
    }
    for name, options in photos.items():
        put("image", name, picture(**options))
    exif = Image.Exif()
    exif[0x0112] = 6
    put("image", "turned.jpg", picture(exif=exif))
    for mode in ("L", "P", "LA", "RGB", "RGBA", "I;16"):
        put("image", f"{mode.replace(';', '')}.png", picture(mode, kind="PNG"))


def arrays():
    examples = {
        "f4": np.ones((3, 2, 2), "f4"),
        "f8": np.zeros((2, 3), ">f8"),
        "i2": np.arange(4, dtype="i2"),
        "fortran": np.asfortranarray(np.ones((3, 4, 2))),
        "f2": np.ones((2, 2), "f2"),
        "b1": np.ones(5, bool),
        "empty": np.ones((0, 3), "f4"),
    }
    for name, array in examples.items():
        out = io.BytesIO()
        np.save(out, array)
        put("npy", f"{name}.npy", out.getvalue())
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ones((2, 2), "f4"), version=(2, 0))
    put("npy", "version2.npy", out.getvalue())


def idx():
    pixels = RNG.integers(0, 256, (1, 28, 28), dtype=np.uint8).tobytes()
    both = struct.pack(">IIII", 0x803, 1, 28, 28) + pixels + struct.pack(">II", 0x801, 1) + b"\x07"
    put("idx", "pair", both)
    two = struct.pack(">IIII", 0x803, 2, 2, 3) + bytes(range(12))
    put("idx", "images", two)
    put("idx", "gzip", gzip.compress(two, mtime=0))


def shards():
    members = (
        ("a.jpg", picture(size=(9, 8))),
        ("a.cls", b"3"),
        ("b.png", picture(size=(8, 8), kind="PNG")),
        ("b.cls", b"1\n"),
        ("c.json", b"{}"),
    )
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    put("shards", "ustar.tar", out.getvalue())
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("x" * 120 + ".png")
        data = picture(size=(5, 5), kind="PNG")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    put("shards", "pax.tar", out.getvalue())


def safetensors():
    def file(header, data):
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data
    put("safetensors", "two", file({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                                    "b": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]},
                                    "__metadata__": {"k": "v"}}, bytes(16)))
    put("safetensors", "empty", file({}, b""))
    bf16 = {"w": {"dtype": "BF16", "shape": [1, 0, 3], "data_offsets": [0, 0]}}
    put("safetensors", "bf16", file(bf16, b""))
    index = {"metadata": {"total_size": 2}, "weight_map": {"a": "1", "b": "2"}}
    put("safetensors", "index", json.dumps(index).encode())


def yaml():
    put("yaml", "plain", b"# a comment\nbatch: 64\nlr: 1e-3\nout: result\nmean: [0.1, 0.2, 0.3]\n")
    put("yaml", "words", b"flip: no\ndata: 'a b'\nmodel: \"x\\n\"\nschedule: |\n  cosine\n")
    put("yaml", "refused", b"a: &x 1\nb: *x\nc: !!int 3\nd: {e: {f: {g: {h: 1}}}}\n")


def tokenizer():
    """The first letter says which file the rest is."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    letters = {chr(b): b for b in printable}
    letters.update({chr(256 + i): b for i, b in enumerate(others)})
    letters.update({"ab": 256, "abc": 257, "\u0120a": 258})
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
               r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated",
             "invert": False}
    bpe = {"added_tokens": [{"id": 259, "content": "<m>", "lstrip": True, "rstrip": True}],
           "normalizer": {"type": "NFC"},
           "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
           "model": {"type": "BPE", "vocab": letters,
                     "merges": ["a b", ["ab", "c"], "\u0120 a"]}}
    put("tokenizer", "bpe", b"j" + json.dumps(bpe).encode())
    words = {"[UNK]": 0, "[CLS]": 1, "un": 2, "##a": 3, "!": 4}
    bert = {"added_tokens": [{"id": 1, "content": "[CLS]", "special": True}],
            "normalizer": {"type": "BertNormalizer", "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": words,
                      "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}}
    put("tokenizer", "bert", b"j" + json.dumps(bert).encode())
    put("tokenizer", "words", b"t[UNK]\n[CLS]\nun\n##a\n!\n")
    put("tokenizer", "merges", b"m#version: 0.2\na b\nab c\n\xc4\xa0 a\n")


def csv():
    put("csv", "classes", b"a,b,t\n1,2.5,red\n-3e2,+.5,blue\n")
    put("csv", "quoted", b'\xef\xbb\xbfa,"b ""c""",t\r\n"1","x\ny",7\r\n\r\n2,z,8\r\n')
    put("csv", "missing", b"1;2;NA\n;3;0.12345678901234567\n")



def mat():
    def element(kind, data):
        return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)

    def array(name, dims, data):
        small = struct.pack("<HH", 1, len(name)) + name + bytes(4 - len(name))
        return element(14, element(6, struct.pack("<II", 9, 0)) +
                       element(5, struct.pack(f"<{len(dims)}I", *dims)) + small + element(2, data))

    def packed(data):
        data = zlib.compress(data)
        return struct.pack("<II", 15, len(data)) + data

    x = array(b"X", (32, 32, 3, 6), bytes(range(256)) * 72)
    y = array(b"y", (6, 1), bytes([1, 2, 10, 4, 5, 6]))
    head = b"MATLAB 5.0".ljust(124) + b"\0\1IM"
    put("mat", "plain", head + x + y)
    put("mat", "packed", head + packed(x) + packed(y))
    put("mat", "elements", packed(x) + y)


images()
arrays()
csv()
idx()
shards()
safetensors()
yaml()
tokenizer()
mat()
put("cifar", "two", bytes([3]) + bytes(3072) + bytes([9]) + bytes(range(256)) * 12)
