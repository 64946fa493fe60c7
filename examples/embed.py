#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Loads a sentence-embedding model (BERT) by path and answers a question with it.

  embed.py FOLDER

An ordinary program: the libraries `safetensors` and `tokenizers` open the files, numpy does the arithmetic,
and none of them knows what FOLDER is. Prints one line of tab-separated fields: the seconds that loading
took, the bytes of the tensors, a sha256 over every tensor and the answer's numbers, and the answer.
"""

import hashlib
import json
import math
import pathlib
import sys
import time

import numpy as np
import tokenizers
from safetensors import safe_open

QUESTION = "Which colour does the sky have?"
ANSWERS = ["Bread is made of flour.", "On a clear day it is blue.", "The train leaves at noon."]


class Bert:
    """The weights in memory, and the forward pass of one text."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        with safe_open(folder / "model.safetensors", framework="numpy") as file:
            self.tensors = {name: file.get_tensor(name) for name in file.keys()}

    def embed(self, text):
        """The mean over the tokens, of length 1."""
        tokens = self.tokenizer.encode(text).ids
        weights = self.tensors
        hidden = self._norm("embeddings.LayerNorm", weights["embeddings.word_embeddings.weight"][tokens] +
                            weights["embeddings.position_embeddings.weight"][:len(tokens)] +
                            weights["embeddings.token_type_embeddings.weight"][0])
        for number in range(self.config["num_hidden_layers"]):
            hidden = self._layer(f"encoder.layer.{number}", hidden)
        mean = hidden.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _layer(self, name, hidden):
        attended = self._attention(name + ".attention.self", hidden)
        hidden = self._norm(name + ".attention.output.LayerNorm",
                            hidden + self._dense(name + ".attention.output.dense", attended))
        wide = self._dense(name + ".intermediate.dense", hidden)
        wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        return self._norm(name + ".output.LayerNorm", hidden + self._dense(name + ".output.dense", wide))

    def _attention(self, name, hidden):
        heads = self.config["num_attention_heads"]
        query, key, value = (
            self._dense(f"{name}.{part}", hidden).reshape(len(hidden), heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value"))
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[2])
        scores = np.exp(scores - scores.max(axis=2, keepdims=True))
        scores /= scores.sum(axis=2, keepdims=True)
        return (scores @ value).transpose(1, 0, 2).reshape(len(hidden), -1)

    def _dense(self, name, hidden):
        return hidden @ self.tensors[name + ".weight"].T + self.tensors[name + ".bias"]

    def _norm(self, name, hidden):
        hidden = hidden - hidden.mean(axis=1, keepdims=True)
        hidden = hidden / np.sqrt((hidden ** 2).mean(axis=1, keepdims=True) + self.config["layer_norm_eps"])
        return hidden * self.tensors[name + ".weight"] + self.tensors[name + ".bias"]


def main(folder):
    began = time.monotonic()
    model = Bert(pathlib.Path(folder))
    seconds = time.monotonic() - began

    question = model.embed(QUESTION)
    likeness = [float(question @ model.embed(answer)) for answer in ANSWERS]
    best = max(range(len(ANSWERS)), key=likeness.__getitem__)
    digest = hashlib.sha256()
    for name, tensor in sorted(model.tensors.items()):
        digest.update(name.encode() + memoryview(tensor).cast("B"))
    digest.update(" ".join(f"{value:.4f}" for value in likeness).encode())
    size = sum(tensor.nbytes for tensor in model.tensors.values())
    print(f"{seconds:.3f}", size, digest.hexdigest(),
          f"{QUESTION} {ANSWERS[best]} ({likeness[best]:.2f})", sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:])
