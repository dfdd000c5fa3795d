"""What every head of SmolLM2-135M attends to on four sentences, for chapter 10.

Nothing is drawn at random. The weights are rounded to multiples of 1/255 (see
attnbook_course.live.weights). Takes ten seconds.
"""

import numpy as np
import torch

from attnbook import pretrained
from attnbook_course.live import weights
from experiments.harness import Experiment

EIGHT = " window copper river lemon doctor paper island music"
CALLED = "When Mira called Pavel,"
TEXTS = {
    "a sentence of prose": "The old man walked his dog along the river before the sun went down.",
    "a sentence that repeats itself": f"{CALLED} Tom laughed. {CALLED}",
    "eight words without connection, twice": 2 * EIGHT,
    "numbers as text": "x = 31, y = 52\nx = 33, y = ",
}
START = "<|endoftext|>"  # begins each text, and is shown as <s>


def main(experiment: Experiment) -> None:
    file = pretrained.fetch("smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    model = pretrained.from_gguf(file, max_length=32)
    words = pretrained.tokens_from_gguf(file)
    sentences = []
    for title, text in list(TEXTS.items())[: 1 if experiment.quick else None]:
        numbers = words.encode(START + text, split_special_tokens=False)
        with torch.no_grad():
            _, by_layer = model(torch.tensor([numbers]), return_weights=True)
        tokens = ["<s>", *(words.decode([number]) for number in numbers[1:])]
        of_heads = np.stack([layer[0].numpy() for layer in by_layer])
        sentences.append(weights.Sentence(title, tokens, of_heads))
        print(title, of_heads.shape)
    if not experiment.quick:
        file = weights.store("smollm2", "SmolLM2-135M", sentences)
        print(f"{file.name}: {file.stat().st_size:,} bytes")
