#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden files for test_folders.c from the package `peft` (0.21): adapters with random values for
models of published.py, saved as peft does, and the logits that model and adapters give together.

  python3 adapters.py > adapters.inc                              writes published/*_lora as well
"""
import shutil

import peft
import torch
import transformers as hf

from published import HERE, TOKENS, show, spread

# name, model, settings
ADAPTERS = [
    ("gpt2_lora", "gpt2", {"r": 3, "lora_alpha": 5, "target_modules": ["c_attn", "c_fc"]}),
    ("llama_lora", "llama", {"r": 4, "lora_alpha": 6, "use_rslora": True,
                             "target_modules": "all-linear"}),
]


def main():
    print("/* SPDX-License-Identifier: Apache-2.0\n *\n * Made by adapters.py. */")
    for name, base, options in ADAPTERS:
        torch.manual_seed(2)
        model = hf.AutoModelForCausalLM.from_pretrained(HERE / base, dtype=torch.float32)
        model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **options))
        spread(torch.nn.ParameterList(p for k, p in model.named_parameters() if "lora" in k))
        shutil.rmtree(HERE / name, ignore_errors=True)
        model.eval().peft_config["default"].base_model_name_or_path = base
        model.save_pretrained(HERE / name)
        (HERE / name / "README.md").unlink()
        with torch.no_grad():
            show(name, model(torch.tensor([TOKENS])).logits.flatten().tolist())


if __name__ == "__main__":
    main()
