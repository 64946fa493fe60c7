#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Makes and loads small models with transformers. Run by an interpreter that has it.

  hub_models.py make FOLDER           FOLDER/sharded: several shards, an index and a tokenizer;
                                      FOLDER/custom: a model whose classes are in .py files beside its weights
  hub_models.py load NAME[@REVISION]...   with from_pretrained(), by the name of a repository or a path; prints
                                      JSON, for each: seconds, class, one sha256 over all parameters, and over
                                      what it computes for one input; tokens, where it has a tokenizer
"""

import hashlib
import json
import pathlib
import sys
import time

import torch
import transformers

SEED = 7
WORDS = ["[UNK]", "[PAD]", *(f"w{at}" for at in range(1000))]

CONFIGURATION = '''\
from transformers import PretrainedConfig


class OwnConfig(PretrainedConfig):
    model_type = "own"

    def __init__(self, width=64, depth=3, **rest):
        self.width, self.depth = width, depth
        super().__init__(**rest)
'''
LAYERS = '''\
import torch


class OwnLayer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.linear(x))
'''
MODEL = '''\
import torch
from transformers import PreTrainedModel

from .configuration_own import OwnConfig
from .layers_own import OwnLayer


class OwnModel(PreTrainedModel):
    config_class = OwnConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = torch.nn.Embedding(1000, config.width)
        self.layers = torch.nn.ModuleList(OwnLayer(config.width) for _ in range(config.depth))
        self.post_init()

    def _init_weights(self, module):
        pass

    def forward(self, input_ids, **_):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x)
        return x
'''


def make_sharded(folder):
    torch.manual_seed(SEED)
    config = transformers.LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=4, vocab_size=2000,
                                      num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=128)
    transformers.LlamaForCausalLM(config).save_pretrained(folder, max_shard_size="3MB")
    from tokenizers import Tokenizer, models, pre_tokenizers
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]",
                                         pad_token="[PAD]").save_pretrained(folder)


def make_custom(folder):
    from safetensors.torch import save_file
    folder.mkdir(parents=True)
    (folder / "configuration_own.py").write_text(CONFIGURATION)
    (folder / "layers_own.py").write_text(LAYERS)
    (folder / "modeling_own.py").write_text(MODEL)
    (folder / "config.json").write_text(json.dumps({
        "model_type": "own", "architectures": ["OwnModel"], "width": 64, "depth": 3,
        "auto_map": {"AutoConfig": "configuration_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"}}))
    torch.manual_seed(SEED)
    tensors = {"embed.weight": torch.randn(1000, 64)}
    for layer in range(3):
        tensors[f"layers.{layer}.linear.weight"] = torch.randn(64, 64)
        tensors[f"layers.{layer}.linear.bias"] = torch.randn(64)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def load(name):
    name, _, revision = name.partition("@")
    revision = revision or "main"
    began = time.monotonic()
    config = transformers.AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=True)
    own = config.model_type == "own"
    kind = transformers.AutoModel if own else transformers.AutoModelForCausalLM
    model = kind.from_pretrained(name, revision=revision, trust_remote_code=True).eval()
    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(key.encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    with torch.no_grad():
        found = model(torch.arange(10).unsqueeze(0))
    found = found if own else found.logits
    result = {"seconds": round(time.monotonic() - began, 3), "class": type(model).__name__,
              "sha256": digest.hexdigest(),
              "computed": hashlib.sha256(found.contiguous().numpy().tobytes()).hexdigest()}
    if not own:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, revision=revision)
        result["tokens"] = tokenizer("w1 w2 what")["input_ids"]
    return result


def main(command, *names):
    torch.set_num_threads(1)
    if command == "make":
        make_sharded(pathlib.Path(names[0]) / "sharded")
        make_custom(pathlib.Path(names[0]) / "custom")
    else:
        print(json.dumps([load(name) for name in names]))


if __name__ == "__main__":
    main(*sys.argv[1:])
