"""Which atom became which: the weights of RXNMapper's 96 heads against mappings by chemists.

Sixty reactions are in the package. The 610 are read where tools/make_reactions.py --all has written
them, into _build/reactions/, a file for each seed of their random order; without, their stored
figures stay.

Nothing is trained and no head is chosen: head 11.6 is the one that RXNMapper's code names.
Intervals are over reactions, 2000 times drawn again. Ten seconds, and minutes with the 610.
"""

from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from attnbook import datasets
from attnbook.datasets.reactions import GROUPS, Reaction, read_reactions
from attnbook.pretrained import fetch, from_folder
from experiments.harness import Experiment, rounded

Array = np.ndarray
LAYER, HEAD = 10, 5  # head 11.6, counted from 0
SEED, RESAMPLES = 0, 2000
MANY = Path("_build/reactions")


def load() -> Callable[[Reaction], Array]:
    """A function from a reaction to weights of all heads, (layers, heads, products, reactants).

    The weights from an atom of the products to one of the reactants and back are added up.
    """
    folder = fetch("rxnmapper")
    model = from_folder(folder)
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    number = {token: i for i, token in enumerate(vocabulary)}

    @torch.no_grad()
    def weights_of(reaction: Reaction) -> Array:
        tokens = ["[CLS]", *reaction.tokens, "[SEP]"]
        _, layers = model(torch.tensor([number[t] for t in tokens]), return_weights=True)
        weights = np.stack([layer.numpy() for layer in layers])
        before, after = 1 + reaction.reactants, 1 + reaction.products
        there = weights[..., after[:, None], before]
        back = weights[..., before[:, None], after]
        return there + np.swapaxes(back, -1, -2)

    return weights_of


def largest(weights: Array, reaction: Reaction) -> Array:
    """For each atom of the products, whether the largest weight on its element is right."""
    picked = np.where(reaction.same_element, weights, -1.0).argmax(axis=-1)
    return reaction.correct[np.arange(len(reaction.products)), picked]


def one_to_one(weights: Array, reaction: Reaction) -> Array:
    """The same, where no atom is taken twice and the sum of the alignment is largest."""
    alignment = weights / weights.sum(axis=1, keepdims=True)
    gain = np.where(reaction.same_element, alignment, -1e6)
    rows, columns = linear_sum_assignment(gain, maximize=True)
    return reaction.correct[rows, columns]


def by_chance(reaction: Reaction) -> Array:
    """The probability that an atom of the same element, drawn at random, is right."""
    right = np.sum(reaction.correct & reaction.same_element, axis=1)
    return right / np.sum(reaction.same_element, axis=1)


def by_rank(reaction: Reaction) -> Array:
    """The k-th atom of an element in the products is the k-th of that element before."""
    found = []
    for atom, same in enumerate(reaction.same_element):
        candidates = np.flatnonzero(same)
        earlier = np.all(reaction.same_element[:atom] == same, axis=1).sum() if atom else 0
        found.append(reaction.correct[atom, candidates[min(earlier, len(candidates) - 1)]])
    return np.array(found)


def by_place(reaction: Reaction) -> Array:
    """The atom of the element that stands at the nearest share of its side."""
    after, before = (np.arange(n) / n + 0.5 / n for n in reaction.correct.shape)
    return largest(2 - np.abs(after[:, None] - before), reaction)


def by_text(reaction: Reaction) -> Array:
    """Blocks of equal text, as difflib finds them; what is left, by rank among what is left."""
    arrow = reaction.tokens.index(">>")
    old, new = reaction.tokens[:arrow], reaction.tokens[arrow + 1 :]
    blocks = SequenceMatcher(None, new, old, autojunk=False).get_matching_blocks()
    place = {b.a + k: b.b + k for b in blocks for k in range(b.size)}
    before = {int(token): atom for atom, token in enumerate(reaction.reactants)}
    known = [before.get(place.get(int(t) - arrow - 1, -1)) for t in reaction.products]
    taken, found = set(known), []
    for atom, origin in enumerate(known):
        if origin is None:
            left = [k for k in np.flatnonzero(reaction.same_element[atom]) if k not in taken]
            origin = left[0] if left else None
            taken.add(origin)
        found.append(origin is not None and reaction.correct[atom, origin])
    return np.array(found)


def share(found: list[Array]) -> float:
    """Of all atoms of some reactions."""
    return float(np.concatenate(found).mean())


def interval(found: list[Array]) -> list[float]:
    """In which 95 of 100 resamples of the reactions lie."""
    right, atoms = (np.array([f(one) for one in found]) for f in (np.sum, len))
    drawn = np.random.default_rng(SEED).integers(len(found), size=(RESAMPLES, len(found)))
    shares = right[drawn].sum(axis=1) / atoms[drawn].sum(axis=1)
    return rounded(np.quantile(shares, [0.025, 0.975]))


def measure(reactions: list[Reaction], weights: list[Array]) -> dict[str, Any]:
    """How many atoms the head finds, and what is possible without it."""
    pairs = list(zip(weights, reactions, strict=True))
    ours = [largest(w[LAYER, HEAD], r) for w, r in pairs]
    rivals: dict[str, list[Array]] = {
        "one to one": [one_to_one(w[LAYER, HEAD], r) for w, r in pairs],
        "mean of all heads": [largest(w.mean(axis=(0, 1)), r) for w, r in pairs],
        "chance": [by_chance(r) for r in reactions],
        "rank": [by_rank(r) for r in reactions],
        "place": [by_place(r) for r in reactions],
        "text": [by_text(r) for r in reactions],
    }
    changed = [np.isin(np.arange(len(r.products)), r.changed) for r in reactions]

    def where(chosen: list[Array]) -> dict[str, float]:
        return {"head": rounded(share([f[c] for f, c in zip(ours, chosen, strict=True)]))}

    return {
        "reactions": len(reactions),
        "atoms": sum(map(len, ours)),
        "head": rounded(share(ours)),
        "interval": interval(ours),
        "rivals": {k: rounded(share(found)) for k, found in rivals.items()},
        "intervals": {"text": interval(rivals["text"])},
        "changed": int(np.concatenate(changed).sum()),
        "where bonds change": where(changed),
        "where they stay": where([~c for c in changed]),
    }


def groups(reactions: list[Reaction], weights: list[Array]) -> dict[str, Any]:
    """Measured over all reactions, and over each group."""
    found = {"all": measure(reactions, weights)}
    for group in GROUPS:
        kept = [i for i, r in enumerate(reactions) if r.group == group]
        found[group] = measure([reactions[i] for i in kept], [weights[i] for i in kept])
    return found


def per_reaction(reactions: list[Reaction], weights: list[Array]) -> list[dict[str, Any]]:
    """The atoms that the head finds and misses, reaction by reaction."""
    found = [largest(w[LAYER, HEAD], r) for w, r in zip(weights, reactions, strict=True)]
    return [
        {"group": r.group, "atoms": len(f), "missed": np.flatnonzero(~f).tolist()}
        for r, f in zip(reactions, found, strict=True)
    ]


def main(experiment: Experiment) -> None:
    weights_of = load()
    found: dict[str, Any] = {}
    for key, rewritten in (("sixty", False), ("sixty rewritten", True)):
        reactions = datasets.reactions(rewritten=rewritten)[:: 10 if experiment.quick else 1]
        weights = [weights_of(one) for one in reactions]
        found[key] = groups(reactions, weights)
        if not rewritten:
            heads = [largest(w, r) for w, r in zip(weights, reactions, strict=True)]
            found[key]["all"]["heads"] = rounded(np.concatenate(heads, axis=-1).mean(axis=-1))
            found["per reaction"] = per_reaction(reactions, weights)
        print(key, found[key]["all"]["head"], found[key]["all"]["rivals"], flush=True)

    def all_of(text: str, *, rewritten: bool = False) -> dict[str, Any]:
        reactions = read_reactions(text, rewritten=rewritten)
        return {"all": measure(reactions, [weights_of(one) for one in reactions])}

    if texts := [path.read_text(encoding="utf-8") for path in sorted(MANY.glob("*"))]:
        found["610"] = all_of(texts[0])
        found["610 rewritten"] = [all_of(text, rewritten=True) for text in texts]
    else:
        found = {**experiment.stored(), **found}
    experiment.store(found=found)
