#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden files for test_published.c from the package `transformers` (5.22.2) with PyTorch 2.13:
small models with random weights, saved as their authors publish them, and the logits they give.

  python3 published.py > published.inc                            writes published/ as well
"""
import json
import shutil
from pathlib import Path

import torch
import transformers as hf
from safetensors.torch import load_file, save_file

HERE = Path(__file__).resolve().parent / "published"
TOKENS = [3, 17, 0, 39, 8, 21, 5]

LLAMA = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}

BERT = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 2}
WORDS = {"vocab_size": 40, "max_position_embeddings": 8}


def decoder(model, folder):
    yield "", model(torch.tensor([TOKENS])).logits


def bert(model, folder):
    """One sequence; then two, the second of 4 tokens and padding, with two types of tokens."""
    x = torch.tensor([TOKENS, TOKENS[::-1]])
    mask = torch.tensor([[1] * 7, [1] * 4 + [0] * 3])
    types = torch.tensor([[0, 0, 0, 1, 1, 1, 1]] * 2)
    yield "", model(x[:1])[0]
    yield "_padded", model(x, attention_mask=mask, token_type_ids=types)[0]


def old_bert(model, folder):
    """Saved like the first published models, with all heads and other names in normalisations."""
    path = folder / "model.safetensors"
    arrays = load_file(path)
    save_file({k.replace("LayerNorm.weight", "LayerNorm.gamma")
               .replace("LayerNorm.bias", "LayerNorm.beta"): v for k, v in arrays.items()}, path)
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["BertForMaskedLM"]
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    yield from bert(model, folder)


def vit(model, folder):
    x = torch.sin(0.37 * torch.arange(2 * 3 * 8 * 8, dtype=torch.float64)).float()
    yield "", model(x.reshape(2, 3, 8, 8)).logits


# name, model, bytes of a shard of its weights, logits
MODELS = [
    ("gpt2", lambda: hf.GPT2LMHeadModel(hf.GPT2Config(
        vocab_size=40, n_positions=16, n_embd=16, n_layer=2, n_head=2)), "1GB", decoder),
    ("llama", lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA, rope_theta=500.0)), "6kB",
     decoder),
    ("mistral", lambda: hf.MistralForCausalLM(hf.MistralConfig(
        **LLAMA, sliding_window=3, head_dim=6)), "1GB", decoder),
    ("qwen2", lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(
        **LLAMA, tie_word_embeddings=True)), "1GB", decoder),
    ("bert", lambda: hf.BertForPreTraining(hf.BertConfig(**BERT, **WORDS)), "1GB", old_bert),
    ("bert_classes", lambda: hf.BertForSequenceClassification(hf.BertConfig(
        **BERT, **WORDS, num_labels=3)), "1GB", bert),
    ("vit", lambda: hf.ViTForImageClassification(hf.ViTConfig(
        **BERT, image_size=8, patch_size=4, num_labels=5)), "1GB", vit),
]


def spread(model):
    """Larger weights than a fresh model has, and no zeros, so that every part counts."""
    for p in model.parameters():
        p.data += 0.2 * torch.randn_like(p)


def show(name, values):
    print(f"static const double {name}_expected[] = {{")
    line = "   "
    for v in values:
        word = f" {v:.9g},"
        if len(line) + len(word) > 100:
            print(line)
            line = "   "
        line += word
    print(line + "\n};")


def main():
    print("/* SPDX-License-Identifier: Apache-2.0\n *\n * Made by published.py. */")
    for name, make, shard, logits in MODELS:
        torch.manual_seed(1)
        model = make().eval()
        spread(model)
        shutil.rmtree(HERE / name, ignore_errors=True)
        model.save_pretrained(HERE / name, max_shard_size=shard)
        (HERE / name / "generation_config.json").unlink(missing_ok=True)
        with torch.no_grad():
            for suffix, y in logits(model, HERE / name):
                show(name + suffix, y.flatten().tolist())


if __name__ == "__main__":
    main()
