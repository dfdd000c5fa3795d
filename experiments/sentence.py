"""A few heads of SmolLM2-135M on the sentence that goes through the book: drawings.sentence.

The model is not needed: experiments/model_heads.py asked it. Kept are all nine heads of layer 14,
among them the one in which " his" gives " man" the most weight; the other heads in which " man" has
the largest of its weights; and two that look at the token before. Takes a second.
"""

import numpy as np

from attnbook_course.live import weights
from experiments.harness import Experiment

LAYER = 14  # counted from 1, as all here
BEFORE = ((12, 2), (17, 1))
ASKS, ASKED = " his", " man"


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
    experiment.store(
        model=stored.model,
        all_heads=layers * heads,
        tokens=list(sentence.tokens),
        largest=largest,
        heads={
            f"{layer}.{head}": " ".join(map(str, units[layer - 1, head - 1]))
            for layer, head in kept
        },
    )
