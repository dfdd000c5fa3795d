"""A few heads of SmolLM2-135M on the sentence that goes through the book: drawings.sentence.

The weights come from experiments/model_heads.py. Kept are all nine heads of layer 14; the other
heads in which " man" has the largest weight of " his"; and two that look at the token before. Of
the head in which " his" gives " man" the most, the model is asked for queries, keys and values,
too: datasets.one_head. Takes ten seconds.
"""

import numpy as np
import torch
from torch import Tensor

from attnbook import attend, pretrained
from attnbook.attention.heads import project
from attnbook_course.live import weights
from experiments.harness import Experiment
from experiments.model_heads import START, TEXTS

LAYER, HEAD = 14, 9  # counted from 1, as all here
BEFORE = ((12, 2), (17, 1))
ASKS, ASKED = " his", " man"
UNIT = 1000  # of what is kept of queries, keys and values, in whole numbers


def queries_keys_values() -> list[np.ndarray]:
    """Of the one head, (n, width) each, queries and keys turned by their positions, in 1/1000."""
    file = pretrained.fetch("smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    model = pretrained.from_gguf(file, max_length=32)
    text = START + TEXTS["a sentence of prose"]
    numbers = pretrained.tokens_from_gguf(file).encode(text, split_special_tokens=False)
    layer = model.decoder[LAYER - 1].attention
    streams: list[Tensor] = []
    layer.register_forward_pre_hook(lambda _, arguments: streams.append(arguments[0]))
    with torch.no_grad():
        _, by_layer = model(torch.tensor([numbers]), return_weights=True)
        (stream,) = streams
        heads = [of_heads[0, HEAD - 1] for of_heads in project(layer, stream, stream, stream)]
    kept = [np.rint(UNIT * array.double().numpy()).astype(int) for array in heads]
    q, k, v = (units / UNIT for units in kept)
    _, found = attend(q, k, v, causal=True, return_weights=True)
    off = np.abs(found - by_layer[LAYER - 1][0, HEAD - 1].numpy()).max(axis=1)
    print("weights of what is kept, off the model's:", *(f"{row:.0e}" for row in off))
    return kept


def main(experiment: Experiment) -> None:
    stored = weights.load("smollm2")
    sentence = stored.sentences[0]
    layers, heads = sentence.shape
    n = len(sentence.tokens)
    units = sentence.units().reshape(layers, heads, n * (n + 1) // 2)
    his, man = (sentence.tokens.index(token) for token in (ASKS, ASKED))
    asked = np.asarray(sentence.weights)[:, :, his]
    largest = [
        (int(layer) + 1, int(head) + 1) for layer, head in np.argwhere(asked.argmax(axis=-1) == man)
    ]
    print(f"{ASKS!r} gives {ASKED!r} its largest weight in {largest}")
    kept = dict.fromkeys((*((LAYER, head) for head in range(1, heads + 1)), *largest, *BEFORE))
    names = ("queries", "keys", "values")
    experiment.store(
        model=stored.model,
        all_heads=layers * heads,
        tokens=list(sentence.tokens),
        largest=largest,
        heads={
            f"{layer}.{head}": " ".join(map(str, units[layer - 1, head - 1]))
            for layer, head in kept
        },
        one_head={
            name: [" ".join(map(str, row)) for row in array]
            for name, array in zip(names, queries_keys_values(), strict=True)
        },
    )
