"""Chapter 6's heads in SmolLM2-135M: who looks where, and what is lost without them.

    python -m experiments.real_heads            all; stores the results (about half an hour)
    python -m experiments.real_heads --quick    one seed, two rows; stores nothing

A row is the token that begins a text, forty random words, and the same forty words again. The heads
are chosen on the rows of seed 4 and judged on those of the seeds 0 to 3. Layers and heads count
from 1.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from attnbook import causal_mask, datasets, pretrained
from attnbook.layers.linear import linear
from attnbook.layers.norms import apply_norm
from attnbook.models.blocks import encoder_block
from attnbook.models.transformer import run_blocks
from experiments.storing import asked_quick, store

ROWS, PERIOD, CHOSEN_ON, SEEDS = 8, 40, 4, (0, 1, 2, 3)
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
Head = tuple[int, int]


def repeated_words(words: Any, seed: int, rows: int = ROWS) -> Int[np.ndarray, "rows n"]:
    """Forty different random words, twice, after the token that begins a text."""
    rng = np.random.default_rng(seed)
    whole = [i for i, t in enumerate(words.tokens) if i > 100 and t[0] == "Ġ" and t[1:].isalpha()]
    first = np.array([rng.choice(whole, PERIOD, replace=False) for _ in range(rows)])
    return np.hstack([np.zeros((rows, 1), dtype=int), first, first])


def where_heads_look(model: Any, tokens: Int[np.ndarray, "rows n"]) -> dict[str, np.ndarray]:
    """Mean weights (layers, heads): on the place before, on what followed, on the first token.

    The first is taken over the first round, the others over the second.
    """
    place = np.arange(tokens.shape[1])
    keys = {
        "before": place[:, None] - 1 == place,
        "followed": place[:, None] - PERIOD + 1 == place,
        "first": np.broadcast_to(place == 0, (len(place), len(place))),
    }
    later = (place > PERIOD) & (place < place[-1])
    queries = {"before": (place >= 2) & (place <= PERIOD), "followed": later, "first": later}
    found: dict[str, list[np.ndarray]] = {name: [] for name in keys}
    _, weights = model(torch.tensor(tokens), return_weights=True)
    for of_layer in weights:
        mean = of_layer.numpy().mean(axis=0)  # (heads, n, n)
        for name, where in keys.items():
            found[name].append((mean * where).sum(axis=-1)[:, queries[name]].mean(axis=-1))
    return {name: np.array(rows) for name, rows in found.items()}


@contextmanager
def without(
    model: Any, heads: Sequence[Head], means: dict[Head, Tensor] | None = None
) -> Iterator[None]:
    """The model without what some heads add; with means, each adds its mean instead."""
    width = model.embed_dim // model.num_heads
    kept = [layer.attention.output.weight.clone() for layer in model.decoder]
    hooks = []
    for number, head in heads:
        layer = model.decoder[number - 1]
        output = layer.attention.output.weight
        columns = slice(width * (head - 1), width * head)
        if means is not None:
            shift = output[:, columns] @ means[number, head]
            hooks.append(
                layer.attention.register_forward_hook(
                    lambda _, __, out, shift=shift: (
                        (out[0] + shift, *out[1:]) if isinstance(out, tuple) else out + shift
                    )
                )
            )
        output[:, columns] = 0
    try:
        yield
    finally:
        for layer, weight in zip(model.decoder, kept, strict=True):
            layer.attention.output.weight.copy_(weight)
        for hook in hooks:
            hook.remove()


def mean_outputs(
    model: Any, tokens: Int[np.ndarray, "rows n"], heads: Sequence[Head]
) -> dict[Head, Tensor]:
    """The mean of what each head hands to its output matrix, over rows and places, (head_dim,)."""
    width, means, hooks = model.embed_dim // model.num_heads, {}, []
    for number, head in heads:

        def keep(_: Any, given: tuple[Tensor], key: Head = (number, head)) -> None:
            columns = slice(width * (key[1] - 1), width * key[1])
            means[key] = given[0][..., columns].mean(dim=(0, 1))

        hooks.append(model.decoder[number - 1].attention.output.register_forward_pre_hook(keep))
    model(torch.tensor(tokens))
    for hook in hooks:
        hook.remove()
    return means


def share_right(model: Any, tokens: Int[np.ndarray, "rows n"]) -> float:
    """The share of words of the second round, but its first, that are the most probable ones."""
    seen = torch.tensor(tokens)
    right = model(seen[:, :-1]).argmax(dim=-1) == seen[:, 1:]
    return right[:, PERIOD + 1 :].float().mean().item()


def share_without_notes(
    model: Any, tokens: Int[np.ndarray, "rows n"], writer: Head, readers: Sequence[int], part: str
) -> float:
    """The same when the queries, keys or values of some layers do not see what one head added."""
    seen, width = torch.tensor(tokens), model.embed_dim // model.num_heads
    x, notes = model.embedding.weight[seen[:, :-1]], torch.zeros(())
    mask = causal_mask(x.shape[1], x)
    for number, block in enumerate(model.decoder, start=1):

        def attention(
            normed: Tensor, cut: Tensor = x - notes, block: Any = block, number: int = number
        ) -> Any:
            given = dict.fromkeys(("queries", "keys", "values"), normed)
            if number in readers and part in given:
                given[part] = apply_norm(block.attention_norm, cut)
            return block.attention(**given, mask=mask)

        if number == writer[0]:
            normed = apply_norm(block.attention_norm, x)
            kept = block.attention.output.weight.clone()
            full = block.attention(normed, mask=mask)
            block.attention.output.weight[:, width * (writer[1] - 1) : width * writer[1]] = 0
            notes = full - block.attention(normed, mask=mask)
            block.attention.output.weight.copy_(kept)
        x = encoder_block(block, x, attention)
    logits = linear(model.readout, apply_norm(model.decoder_norm, x))
    right = logits.argmax(dim=-1) == seen[:, 1:]
    return right[:, PERIOD + 1 :].float().mean().item()


def prose(words: Any, rows: int = 5, length: int = 301) -> Int[np.ndarray, "rows n"]:
    """Tokens of the language reference's held-out paragraphs, each row after a first token."""
    text = datasets.python_reference()
    tokens = words.encode(text.decode(text.held_out[: 8 * rows * length]))
    starts = np.arange(rows) * (length - 1)
    return np.array([[0, *tokens[at : at + length - 1]] for at in starts])


def run(model: Any, tokens: Int[np.ndarray, "rows n"], mask: Any = None) -> tuple[Tensor, Tensor]:
    """Logits, and weights (layers, rows, heads, n, n), under a mask (n, n) and the causal one."""
    x = model.embedding.weight[torch.tensor(tokens)]
    mask = None if mask is None else torch.tensor(mask)
    x, weights = run_blocks(model.decoder, model.decoder_norm, x, mask, True, causal=True)
    return linear(model.readout, x), torch.stack(weights)


def nats(model: Any, tokens: Int[np.ndarray, "rows n"], mask: Any = None) -> float:
    """Mean cross-entropy of the tokens from place 20 on, in nats per token."""
    logits, _ = run(model, tokens, mask)
    following = torch.tensor(tokens)[:, 1:, None]
    found = -logits[:, :-1].log_softmax(dim=-1).gather(-1, following)[..., 0]
    return found[:, 19:].mean().item()


def sinks(model: Any, words: Any, rows: int) -> dict[str, Any]:
    """Weight on the first token of prose by head, what it carries, and the loss without it."""
    tokens = prose(words, rows)
    n, late = tokens.shape[1], slice(20, None)
    place = np.arange(n)
    lengths, hooks = [], []

    def measure(_: Any, __: Any, values: Tensor) -> None:
        length = values.unflatten(-1, (model.config.num_kv_heads, -1)).norm(
            dim=-1
        )  # (rows, n, heads)
        lengths.append((length[:, 0] / length[:, 1:].median(dim=1).values).mean().item())

    hooks = [block.attention.value.register_forward_hook(measure) for block in model.decoder]
    _, weights = run(model, tokens)
    for hook in hooks:
        hook.remove()
    never = np.broadcast_to(place != 0, (n, n)) | np.eye(n, dtype=bool)
    late_asks = (place >= late.start)[:, None]
    masks = {
        "nothing": np.ones((n, n), dtype=bool),
        "the first, from everybody": never,
        "the first, from place 20 on": ~(late_asks & (place == 0)),
        "the fifth, from place 20 on": ~(late_asks & (place == 4)),
    }
    _, moved = run(model, tokens, never)
    _, plain = run(model, tokens[:, 1:])
    return {
        "weight": weights[..., late, 0].mean(dim=(1, 3)).numpy(),
        "value length": np.array(lengths),
        "weight on the second, the first hidden": moved[..., late, 1].mean().item(),
        "weight on the second": weights[..., late, 1].mean().item(),
        "weight on a first word": plain[..., late, 0].mean().item(),
        "nats, hidden": {name: nats(model, tokens, mask) for name, mask in masks.items()},
        "nats, another first token": nats(
            model, np.where(place == 0, words.encode(" the")[0], tokens)
        ),
    }


def alone_and_together(looks: dict[str, np.ndarray]) -> dict[str, list[Head]]:
    """Heads that find and heads that look back, each alone and together, and as many others.

    A head is named where more than half of its weight lies there. Twenty heads alone are drawn from
    the layers between the first and the last that is named, and four times five others, one from
    each layer of the five that look back.
    """
    finders, back = (
        sorted((int(i) + 1, int(h) + 1) for i, h in np.argwhere(looks[name] > 0.5))
        for name in ("followed", "before")
    )
    rng = np.random.default_rng(6)
    named = {*finders, *back}
    layers = range(min(named)[0], max(named)[0] + 1)
    rest = [head for head in product(layers, range(1, 10)) if head not in named]
    found: dict[str, list[Head]] = {f"{i}.{h}": [(i, h)] for i, h in (*back, *finders)}
    found["all that look back"] = back
    found["all that look back but 17.1"] = [head for head in back if head != (17, 1)]
    for k, n in enumerate(rng.choice(len(rest), 20, replace=False), start=1):
        found[f"one other {k}"] = [rest[n]]
    for k in range(1, 5):
        drawn = [[head for head in rest if head[0] == layer] for layer, _ in back]
        found[f"as many others {k}"] = [of[rng.integers(len(of))] for of in drawn]
    return found


def share_without(
    model: Any, tokens: Int[np.ndarray, "rows n"], heads: Sequence[Head], by_mean: bool = False
) -> float:
    """The share of the repeats that is right without some heads, or where they write their mean."""
    with without(model, heads, mean_outputs(model, tokens, heads) if by_mean else None):
        return share_right(model, tokens)


def one_seed(
    model: Any, words: Any, seed: int, heads: dict[str, list[Head]], rows: int
) -> dict[str, Any]:
    """Everything that is judged on the rows of one seed."""
    tokens = repeated_words(words, seed, rows)
    named = {name: [tuple(head) for head in chosen] for name, chosen in heads.items()}
    found: dict[str, Any] = {"nothing": share_right(model, tokens)}
    for name, chosen in named.items():
        found[name] = share_without(model, tokens, chosen)
        found[f"{name}, mean"] = share_without(model, tokens, chosen, by_mean=True)
    for part in ("queries", "keys", "values"):
        found[f"notes in {part}"] = share_without_notes(
            model, tokens, named["writer"][0], (18, 19), part
        )
    return found


def rounded(value: Any) -> Any:
    """Four digits of every number, in whatever holds them."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part) for part in value]
    if isinstance(value, np.ndarray):
        return rounded(value.tolist())
    return None if value is None or value != value else float(f"{value:.4g}")


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    folder = pretrained.fetch("smollm2")
    model, words = pretrained.from_gguf(folder / FILE), pretrained.tokens_from_gguf(folder / FILE)
    rows = 2 if quick else ROWS
    looks = where_heads_look(model, repeated_words(words, CHOSEN_ON, rows))
    order = np.argsort(-looks["followed"], axis=None)
    ranked = [(int(i) // model.num_heads + 1, int(i) % model.num_heads + 1) for i in order]
    back = np.argsort(-looks["before"], axis=None)[:2]
    looking_back = [(int(i) // model.num_heads + 1, int(i) % model.num_heads + 1) for i in back]
    four = ranked[:4]
    rng = np.random.default_rng(5)
    named = {*ranked[:8], *looking_back, (17, 1)}
    rest = [head for head in product(range(15, 25), range(1, 10)) if head not in named]
    heads = {
        "finders": four,
        "writer": [(17, 1)],
        "looks back harder": [(12, 2)],
        "both that look back": [(12, 2), (17, 1)],
        **{
            f"four others {k}": [rest[i] for i in rng.choice(len(rest), 4, replace=False)]
            for k in range(1, 5)
        },
    }
    print(heads, flush=True)
    shares = []
    for seed in SEEDS[: 1 if quick else None]:
        shares.append(one_seed(model, words, seed, heads, rows))
        print(seed, {name: round(share, 2) for name, share in shares[-1].items()}, flush=True)
    each = alone_and_together(looks)
    judged = [repeated_words(words, seed, rows) for seed in SEEDS[: 1 if quick else None]]
    cuts, means = (
        {
            name: [share_without(model, tokens, chosen, by_mean) for tokens in judged]
            for name, chosen in each.items()
        }
        for by_mean in (False, True)
    )
    print(rounded(cuts), rounded(means), flush=True)
    hidden = {
        name: [share_without_notes(model, tokens, chosen[0], (18, 19), "keys") for tokens in judged]
        for name, chosen in each.items()
        if len(chosen) == 1 and chosen[0][0] < 18
    }
    print(rounded(hidden), flush=True)
    text = prose(words, 2 if quick else 5)
    on_prose = {"nothing": nats(model, text)}
    for name, chosen in heads.items():
        with without(model, chosen):
            on_prose[name] = nats(model, text)
    print({name: round(value, 3) for name, value in on_prose.items()}, flush=True)
    sunk = sinks(model, words, 2 if quick else 5)
    print({name: value for name, value in sunk.items() if name != "weight"}, flush=True)
    if quick:
        return
    store(
        "real_heads",
        heads=heads,
        looks={name: table.round(3).tolist() for name, table in looks.items()},
        shares={name: [round(run[name], 4) for run in shares] for name in shares[0]},
        each={
            "heads": each,
            "shares": rounded(cuts),
            "means": rounded(means),
            "notes in keys": rounded(hidden),
        },
        prose={name: round(value, 4) for name, value in on_prose.items()},
        sinks=rounded(sunk),
    )


if __name__ == "__main__":
    main()
