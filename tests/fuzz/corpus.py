#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed files of the fuzz targets to tests/fuzz/corpus (needs NumPy, Pillow and h5py).
They are kept in the repository, so run this again only to add new kinds of files. Names of targets
limit it to these."""
import gzip
import io
import json
import struct
import sys
import tarfile
import zlib
from pathlib import Path

import h5py
import numpy as np
from PIL import Image

TOP = Path(__file__).resolve().parent / "corpus"
RNG = np.random.default_rng(1)


def put(target, name, data):
    if sys.argv[1:] and target not in sys.argv[1:]:
        return
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


def template():
    chat = TOP.parent.parent / "golden" / "chat"
    for path in sorted(chat.glob("*.jinja")):
        put("template", path.stem, path.read_bytes())
    rules = json.loads((chat / "rules.json").read_text())
    for k in range(8):
        text = "".join(rules["rules"][k::8])
        put("template", f"rules{k}", text.encode() + b"\0" + json.dumps(rules["messages"]).encode())


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


def hdf5():
    def file(version, fill):
        out = io.BytesIO()
        with h5py.File(out, "w", libver=(version, "v110")) as f:
            fill(f)
        return out.getvalue()

    def arrays(f):
        pixels = np.arange(12, dtype="f4").reshape(3, 4)
        f.create_dataset("a", data=pixels, chunks=(2, 2), compression="gzip", shuffle=True,
                         fletcher32=True)
        f.create_dataset("g/b", data=np.arange(6, dtype=">f8").reshape(3, 2))
        f.create_dataset("c", (4,), "u2", chunks=(2,))

    def variables(f):
        t = f.create_dataset("t", data=np.array([[1, 2], [3, -9]], "i2"), chunks=(1, 2))
        t.attrs.update(scale_factor=0.5, add_offset=np.float32(273.25), _FillValue=np.int16(-9))
        f.create_dataset("p", data=np.arange(4.).reshape(2, 2)).attrs["missing_value"] = 1e20

    for version in ("earliest", "v110"):
        put("hdf5", f"{version}.h5", file(version, arrays))
        put("netcdf", f"{version}.nc", file(version, variables))


def manifest():
    digits = "0123456789abcdef" * 2
    put("manifest", "arrays", f"file\trank0.safetensors\t96\t{digits}\n"
        f"array\tfc.weight\t1\t4,3\trank0.safetensors\t{digits}\n"
        f"array\toptim[a].n\t5\t\trank0.safetensors\t{digits}\n"
        f"file\trank1.safetensors\t8\t{digits}\n"
        f"array\tfc.state1[0:2]\t1\t2\trank1.safetensors\t{digits}\n".encode())


def config():
    sizes = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2,
             "num_attention_heads": 2}
    text = {"vocab_size": 32, "max_position_embeddings": 16}
    files = {
        "gpt2": {"vocab_size": 32, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 2},
        "llama": {**sizes, **text, "num_key_value_heads": 1, "rms_norm_eps": 1e-5,
                  "rope_parameters": {"rope_type": "default", "rope_theta": 5e5},
                  "tie_word_embeddings": True},
        "qwen2": {**sizes, **text, "num_key_value_heads": 2, "use_sliding_window": True,
                  "sliding_window": 4},
        "bert": {**sizes, **text, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
                 "architectures": ["BertForSequenceClassification"],
                 "id2label": {"0": "a", "1": "b", "2": "c"}},
        "vit": {**sizes, "image_size": 8, "patch_size": 4, "num_channels": 3, "num_labels": 5},
    }
    for name, keys in files.items():
        put("config", name, json.dumps({"model_type": name, **keys}, indent=1).encode())


def timeline():
    kinds = ("compute", "optimizer", "start", "wait", "progress", "input", "exchange", "step")
    events = [{"name": "process_name", "ph": "M", "pid": r, "args": {"name": f"rank {r} (a\\b)"}}
              for r in range(2)]
    events += [{"name": k, "cat": k, "ph": "X", "ts": 10.5 * i, "dur": 2e1, "pid": i % 2, "tid": 0}
               for i, k in enumerate(kinds)]
    facts = {"catena_timeline": 1, "ranks": 2, "clock_within_ns": [100, 2], "lost_spans": [0, 3]}
    put("timeline", "two", json.dumps({"otherData": facts, "traceEvents": events}).encode())


def step():
    put("step", "two", b"name resnet50\nbatch 32\nmemory 1000000 8192\nelements 1024\n"
        b"update 0.000100000\nparam 0\nparam 512\nneed 512\nkernel 0.001000000\nneed 1024\n"
        b"kernel 0.002000000\nready 512 1024\nkernel 0.001500000\nready 0 512\nstep\n")


images()
arrays()
csv()
idx()
shards()
safetensors()
yaml()
tokenizer()
template()
mat()
put("cifar", "two", bytes([3]) + bytes(3072) + bytes([9]) + bytes(range(256)) * 12)
hdf5()
manifest()
config()
timeline()
step()
