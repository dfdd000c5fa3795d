"""The end of mine.py, which trains what the reader has built on a text of the reader's.

mine.finish and the site's pages write all below the line there; mine.use takes for_tensors from it.
"""

# --- All below attnbook has written: python mine.py text.txt trains what stands above.
import math
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

WIDTH, HEADS, BLOCKS, WINDOW = 128, 4, 2, 64
ROWS, STEPS, RATE = 16, 800, 4e-3
PIECE = 50  # steps in which the rate stays as it is
MATRICES = "w_q", "w_k", "w_v", "w_o", "w_1", "w_2"
NAMES = ("norm_1", "norm_2", *MATRICES)  # what a block asks for
logits: Callable[..., Any]  # above, or else main takes the book's
train: Callable[..., Any]
generate: Callable[..., Any]


def starting_weights(vocab: int) -> dict[str, Any]:
    """Numbers with which the stream keeps its size, and the first loss is that of an even guess."""

    def matrix(rows: int, columns: int, size: float = 0.5) -> torch.Tensor:
        return size * torch.randn(rows, columns) / math.sqrt(columns)

    def of_block() -> dict[str, torch.Tensor]:
        square = {name: matrix(WIDTH, WIDTH) for name in MATRICES[:4]}
        mlp = {"w_1": matrix(4 * WIDTH, WIDTH), "w_2": matrix(WIDTH, 4 * WIDTH)}
        return square | mlp | {name: torch.ones(WIDTH) for name in ("norm_1", "norm_2")}

    return {
        "embedding": 0.3 * torch.randn(vocab, WIDTH),
        "position": 0.3 * torch.randn(WINDOW, WIDTH),
        "blocks": [of_block() for _ in range(BLOCKS)],
        "norm": torch.ones(WIDTH),
        "readout": matrix(vocab, WIDTH, 0.1),
    }


def for_tensors(block: Callable[..., Any]) -> Callable[..., Any]:
    """A block for one row of tokens, perhaps NumPy's, as one that PyTorch can train on many."""

    @torch.compile(backend="eager", dynamic=True)  # which needs no compiler
    @torch.compiler.wrap_numpy
    def numpys(x: Any, num_heads: int, mask: Any, *arrays: Any) -> Any:
        return block(x, dict(zip(NAMES, arrays, strict=True)), num_heads, mask)

    def by_numpy(x: Any, weights: dict[str, Any], num_heads: int, mask: Any) -> Any:
        arrays = (weights[name] for name in NAMES)
        return numpys(x, num_heads, mask, *arrays).to(x.dtype)  # np.zeros are of float64

    def in_turn(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda rows: torch.stack([function(row) for row in rows])

    def found(x: torch.Tensor, weights: dict[str, Any], num_heads: int) -> tuple[Any, Any]:
        """What can be trained: the block or by_numpy, and how it takes rows."""
        rows = torch.randn_like(x[..., :4, :].expand(2, -1, -1) if x.ndim == 2 else x[:2])
        sample = {name: one.detach().clone().requires_grad_() for name, one in weights.items()}
        mask = torch.ones(*2 * rows.shape[-2:-1], dtype=torch.bool).tril()
        for one in (block, by_numpy):
            function = partial(one, weights=sample, num_heads=num_heads, mask=mask)
            for over_rows in (torch.vmap, in_turn):  # vmap takes no writing into arrays
                try:
                    over_rows(function)(rows).sum().backward()
                except Exception as said:
                    error = said
                else:
                    return one, over_rows
        raise TypeError(
            f"block: got one that can be trained neither on PyTorch's arrays nor by NumPy, "
            f"expected one that has no other library's functions: {error}"
        ) from None

    ways: list[Any] = []

    def trained(x: Any, weights: dict[str, Any], num_heads: int, mask: Any = None) -> Any:
        if not isinstance(x, torch.Tensor):
            return block(x, weights, num_heads, mask)
        ways[:] = ways or found(x, weights, num_heads)
        one, over_rows = ways
        function: Callable[..., Any] = partial(one, weights=weights, num_heads=num_heads, mask=mask)
        for _ in x.shape[:-2]:
            function = over_rows(function)
        return function(x)

    return trained


def read_text(name: str) -> str:
    """The text of a file; ends with a sentence where there is none that can be trained on."""
    try:
        text = Path(name).read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SystemExit(f"{name}: byte {error.start} is no UTF-8: save it as text.") from None
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
        for some in rows[:: len(rows) // most + 1].split(ROWS):
            last = logits(some[:, :-1], weights, HEADS)[:, half:]
            losses = torch.nn.functional.cross_entropy(
                last.mT, some[:, half + 1 :], reduction="none"
            )
            found.append(losses)
    return float(torch.cat(found).mean()) / math.log(2)


def main(arguments: list[str]) -> None:
    """Train, say every 200 steps how well, and write."""
    if len(arguments) != 1:
        raise SystemExit("Which text? python mine.py text.txt")
    characters = read_text(arguments[0])
    missing = [name for name in ("block", "logits", "train", "generate") if name not in globals()]
    if missing:
        from attnbook_course import builds

        globals().update({name: getattr(builds, name) for name in missing})
        print(f"the book's: {', '.join(missing)}")
    own = globals()["block"]
    globals().update({name: for_tensors(own) for name, value in globals().items() if value is own})
    torch.manual_seed(0)
    torch.set_num_threads(1)
    vocabulary = sorted(set(characters))
    numbers = {character: number for number, character in enumerate(vocabulary)}
    text = torch.tensor([numbers[character] for character in characters])
    known, held_out = text.split(len(text) * 9 // 10 + 1)
    weights, begun = starting_weights(len(vocabulary)), time.time()
    for step in range(0, STEPS, PIECE):
        if step % 200 == 0:
            bits = held_out_bits(held_out, weights, 100)
            print(f"step {step:4d}  {bits:.2f} bits  {time.time() - begun:3.0f} s", flush=True)
        middle = step + PIECE / 2  # Adam begins anew with each piece, and the bits stay the same
        rate = RATE * min(1, middle / 50) * (1 + math.cos(math.pi * middle / STEPS)) / 2
        starts = torch.randint(len(known) - WINDOW, (PIECE, ROWS))
        train(weights, known, HEADS, starts, rate)
    bits = held_out_bits(held_out, weights, 1000)
    print(f"held out: {bits:.2f} bits per character, {time.time() - begun:.0f} s\n")
    written = generate(text[:1], weights, HEADS, torch.rand(400), 0.7)
    print("".join(vocabulary[number] for number in written.tolist()))
    from attnbook_course.live import models

    models.save_built("mine.safetensors", weights, HEADS, "".join(vocabulary))
    print("\nSaved as mine.safetensors, which the live writer of chapter 8 can open.")


if __name__ == "__main__":
    main(sys.argv[1:])
