"""The end of mine.py, which trains what the reader has built on a text of the reader's.

mine.finish and the site's pages write all below the line there.
"""

# --- All below attnbook has written: python mine.py text.txt trains what stands above.
import math
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from attnbook_course import builds, trainable

WIDTH, HEADS, BLOCKS, WINDOW = 128, 4, 2, 64
ROWS, STEPS, RATE, PIECE = 16, 800, 4e-3, 100  # in a piece the rate stays as it is
logits: Any  # above, or else the book's
train: Any
generate: Any


def take_parts() -> None:
    """Yours, and the book's for those that are not there; the book's call yours, too."""
    own = globals().get("block", builds.block)
    if own is not builds.block:  # which may stand there by other names, too
        names = [name for name, value in globals().items() if value is own]
        block = trainable.for_tensors(own)
        try:
            block(torch.zeros(1, WIDTH), starting_weights(1)["blocks"][0], HEADS)
        except TypeError as error:
            raise SystemExit(error) from None
        globals().update(dict.fromkeys(names, block))
    for name in ("block", "logits", "train", "generate"):
        if name in globals():
            setattr(builds, name, globals()[name])
        else:
            globals()[name] = getattr(builds, name)
            print(f"{name}: the book's, until you build it.")


def starting_weights(vocab: int) -> dict[str, Any]:
    """As PyTorch's layers begin, and no offsets."""

    def matrix(rows: int, columns: int) -> torch.Tensor:
        return (2 * torch.rand(rows, columns) - 1) / math.sqrt(columns)

    def of_block() -> dict[str, torch.Tensor]:
        square = {name: matrix(WIDTH, WIDTH) for name in ("w_q", "w_k", "w_v", "w_o")}
        mlp = {"w_1": matrix(4 * WIDTH, WIDTH), "w_2": matrix(WIDTH, 4 * WIDTH)}
        return {**square, **mlp, "norm_1": torch.ones(WIDTH), "norm_2": torch.ones(WIDTH)}

    return {
        "embedding": 0.3 * torch.randn(vocab, WIDTH),
        "position": 0.3 * torch.randn(WINDOW, WIDTH),
        "blocks": [of_block() for _ in range(BLOCKS)],
        "norm": torch.ones(WIDTH),
        "readout": matrix(vocab, WIDTH),
    }


def read_text(name: str) -> str:
    """The text of a file; ends with a sentence where there is none that can be trained on."""
    try:
        text = Path(name).read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SystemExit(
            f"{name}: byte {error.start} is not UTF-8. Save it as UTF-8, as a text."
        ) from None
    except OSError as error:
        raise SystemExit(f"{name}: {error.strerror}.") from None
    least = 10 * (WINDOW + WINDOW // 2 + 1)
    if len(text) < least:
        raise SystemExit(
            f"{name}: got {len(text)} characters, expected {least} or more. A tenth is held out, "
            f"which must have two windows of {WINDOW}."
        )
    return text


def held_out_bits(text: torch.Tensor, weights: dict[str, Any], most: int) -> float:
    """Bits per character in windows that overlap by half, of which the second half counts."""
    rows, half = text.unfold(0, WINDOW + 1, WINDOW // 2), WINDOW // 2
    found = []
    with torch.no_grad():
        for some in torch.split(rows[:: len(rows) // most + 1], ROWS):
            last = logits(some[:, :-1], weights, HEADS)[:, half:]
            found.append(cross_entropy(last.mT, some[:, half + 1 :], reduction="none"))
    return float(torch.cat(found).mean()) / math.log(2)


def main(arguments: list[str]) -> None:
    """Train, say every 200 steps how well, and write."""
    if len(arguments) != 1:
        raise SystemExit("Which text? python mine.py text.txt")
    characters = read_text(arguments[0])
    take_parts()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    vocabulary = sorted(set(characters))
    numbers = {character: number for number, character in enumerate(vocabulary)}
    text = torch.tensor([numbers[character] for character in characters])
    known, held_out = torch.split(text, len(text) * 9 // 10 + 1)
    weights, begun = starting_weights(len(vocabulary)), time.time()
    for step in range(0, STEPS, PIECE):
        if step % 200 == 0:
            bits = held_out_bits(held_out, weights, 100)
            print(f"step {step:4d}  {bits:.2f} bits  {time.time() - begun:3.0f} s", flush=True)
        turn = math.pi * (step + PIECE / 2) / STEPS  # up in 200 steps, and down by a cosine
        rate = RATE * min(1, (step + PIECE) / 200) * (1 + math.cos(turn)) / 2
        starts = torch.randint(len(known) - WINDOW, (PIECE, ROWS))
        train(weights, known, HEADS, starts, rate)  # Adam begins anew: as good
    bits = held_out_bits(held_out, weights, 1000)
    print(f"held out: {bits:.2f} bits per character, {time.time() - begun:.0f} s\n")
    written = generate(text[:1], weights, HEADS, torch.rand(400), 0.7)
    print("".join(vocabulary[number] for number in written.tolist()))
    from attnbook_course.live import models  # it takes a second, which the text need not wait for

    models.save_built("mine.safetensors", weights, HEADS, "".join(vocabulary))
    print("\nSaved as mine.safetensors, which the live writer of chapter 8 can open.")


if __name__ == "__main__":
    main(sys.argv[1:])
