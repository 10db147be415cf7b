#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden tokens for test_text.c from the package `tokenizers` (0.23.3): number and hash of the
tokens of each part of the mixed text. Every parameter is fixed here.

  build/release/tests/golden/test_text --write mixed.txt          (with CATENA_DATA)
  CATENA_DATA=... python3 text.py mixed.txt > text.inc
  CATENA_DATA=... python3 text.py --train mixed.txt               writes text/vocab.txt, llama.json
"""
import os
import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, \
    pre_tokenizers, trainers

HERE = Path(__file__).resolve().parent / "text"
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
           r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def parts(path):
    data = Path(path).read_bytes()
    at = 0
    while at < len(data):
        line = data.index(b"\n", at)
        at = line + 1 + int(data[at:line])
        yield data[line + 1:at].decode("utf-8")


def bert(vocabulary):
    t = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.add_special_tokens(BERT)
    return t


def llama():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    return t


def train(text):
    """Small vocabularies: 3,000 words for WordPiece, 1,500 merges for BPE."""
    t = bert({"[UNK]": 0})
    t.train_from_iterator(text, trainers.WordPieceTrainer(
        vocab_size=3000, special_tokens=BERT, limit_alphabet=1300, show_progress=False))
    words = sorted(t.get_vocab().items(), key=lambda item: item[1])
    (HERE / "vocab.txt").write_text("".join(w + "\n" for w, _ in words), encoding="utf-8")
    t = llama()
    t.train_from_iterator(text, trainers.BpeTrainer(
        vocab_size=1500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"], show_progress=False))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False,
                                     special=True)])
    t.save(str(HERE / "llama.json"), pretty=False)


def golden(name, tokenizer, text):
    print(f"static const struct golden golden_{name}[] = {{")
    for part in text:
        ids = tokenizer.encode(part, add_special_tokens=False).ids
        value = 0xCBF29CE484222325
        for token in ids:
            value = (value ^ token) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        print(f"    {{{len(ids)}, 0x{value:016x}u}},")
    print("};")


def gpt2():
    folder = Path(os.environ["CATENA_DATA"]) / "gpt2-tokenizer"
    t = Tokenizer(models.BPE.from_file(str(folder / "encoder.json"), str(folder / "vocab.bpe")))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.add_special_tokens(["<|endoftext|>"])
    return t


def main():
    text = list(parts(sys.argv[-1]))
    if sys.argv[1] == "--train":
        return train(text[1:3])
    words = (HERE / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
    print("/* Made by text.py; do not edit. Tokens and hash of part 0 (tinyshakespeare) to 10. */")
    print("struct golden {\n    int64_t tokens;\n    uint64_t hash;\n};")
    golden("wordpiece", bert({w: i for i, w in enumerate(words)}), text)
    golden("llama", Tokenizer.from_file(str(HERE / "llama.json")), text)
    golden("gpt2", gpt2(), text)
    return None


if __name__ == "__main__":
    main()
