"""Which atom became which: the weights of RXNMapper's 96 heads against mappings by chemists.

    python -m experiments.atoms               sixty reactions; stores the results (ten seconds)
    python -m experiments.atoms --all FILE…   also all 610 that can be read, in the form of
                                             reactions.json: a file for each random order
    python -m experiments.atoms --quick       six reactions; stores nothing

Without --all the stored figures of the 610 stay. Nothing is trained and no head is chosen: head
11.6 is the one that RXNMapper's code names. Intervals are over reactions, 2000 times drawn again.
"""

import argparse
from collections import Counter
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
from experiments.storing import store

Array = np.ndarray
LAYER, HEAD = 10, 5  # head 11.6, counted from 0
SEED, RESAMPLES, SPLITS = 0, 2000, 200


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


def rounded(numbers: Any) -> Any:
    """Four digits after the point, as plain numbers."""
    return np.round(np.asarray(numbers, dtype=np.float64), 4).tolist()


def name(head: int) -> str:
    """ "11.6" for the sixth head of layer 11."""
    return f"{head // 8 + 1}.{head % 8 + 1}"


def measure(reactions: list[Reaction], weights: list[Array]) -> dict[str, Any]:
    """How many atoms the head finds, all heads, and what is possible without it."""
    heads = [largest(w, r) for w, r in zip(weights, reactions, strict=True)]
    ours = [one[LAYER, HEAD] for one in heads]
    shares = np.concatenate(heads, axis=-1).mean(axis=-1)
    others = shares.copy()
    others[:, HEAD] = 0
    pairs = list(zip(weights, reactions, strict=True))
    rivals: dict[str, list[Array]] = {
        "one to one": [one_to_one(w[LAYER, HEAD], r) for w, r in pairs],
        "mean of all heads": [largest(w.mean(axis=(0, 1)), r) for w, r in pairs],
        "chance": [by_chance(r) for r in reactions],
        "rank": [by_rank(r) for r in reactions],
        "place": [by_place(r) for r in reactions],
        "text": [by_text(r) for r in reactions],
    }
    changed = [np.isin(np.arange(len(r.products)), r.changed) for r in reactions]
    parts = {"head": ours, "text": rivals["text"], "chance": rivals["chance"]}
    return {
        "reactions": len(reactions),
        "atoms": sum(map(len, ours)),
        "head": round(share(ours), 4),
        "interval": interval(ours),
        "whole": round(float(np.mean([one.all() for one in ours])), 4),
        "heads": rounded(shares),
        "median head": rounded(np.median(shares)),
        "best of another number": [name(int(others.argmax())), rounded(others.max())],
        "rivals": {k: rounded(share(found)) for k, found in rivals.items()},
        "intervals": {k: interval(found) for k, found in rivals.items()},
        "changed": int(np.concatenate(changed).sum()),
        "where bonds change": {
            k: rounded(share([f[c] for f, c in zip(found, changed, strict=True)]))
            for k, found in parts.items()
        },
        "where they stay": {
            k: rounded(share([f[~c] for f, c in zip(found, changed, strict=True)]))
            for k, found in parts.items()
        },
    }


def selection(reactions: list[Reaction], weights: list[Array]) -> dict[str, Any]:
    """What the best head of one half of the reactions finds in the other half, many times."""
    heads = [largest(w, r) for w, r in zip(weights, reactions, strict=True)]
    right = np.stack([one.sum(axis=-1).ravel() for one in heads])  # (reactions, 96)
    atoms = np.array([one.shape[-1] for one in heads])
    rng, chosen, shares, ours = np.random.default_rng(SEED), Counter(), [], []
    for _ in range(SPLITS):
        order = rng.permutation(len(heads))
        half, other = np.array_split(order, 2)
        best = int((right[half].sum(axis=0) / atoms[half].sum()).argmax())
        found = right[other].sum(axis=0) / atoms[other].sum()
        chosen[name(best)] += 1
        shares.append(found[best])
        ours.append(found[8 * LAYER + HEAD])
    return {
        "splits": SPLITS,
        "chosen": dict(chosen.most_common()),
        "on the other half": rounded(np.mean(shares)),
        "head 11.6 there": rounded(np.mean(ours)),
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
        {"group": r.group, "row": r.row, "atoms": len(f), "missed": np.flatnonzero(~f).tolist()}
        for r, f in zip(reactions, found, strict=True)
    ]


def measure_many(texts: list[str], weights_of: Callable[[Reaction], Array]) -> dict[str, Any]:
    """All reactions that can be read, and the same in the random order of each file."""
    reactions = read_reactions(texts[0])
    weights = [weights_of(one) for one in reactions]
    found = {"610": groups(reactions, weights), "selection of 610": selection(reactions, weights)}
    print("610", found["610"]["all"]["head"], found["610"]["all"]["rivals"], flush=True)
    found["610 rewritten"] = []  # one for each file
    for text in texts:
        reactions = read_reactions(text, rewritten=True)
        again = groups(reactions, [weights_of(one) for one in reactions])
        for one in again.values():
            del one["heads"]
        found["610 rewritten"].append(again)
        print("610 rewritten", again["all"]["head"], again["all"]["rivals"], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--all", type=Path, nargs="*", default=[])
    asked = parser.parse_args()
    torch.set_num_threads(1)
    weights_of = load()
    found: dict[str, Any] = {}
    for key, rewritten in (("sixty", False), ("sixty rewritten", True)):
        reactions = datasets.reactions(rewritten=rewritten)[:: 10 if asked.quick else 1]
        weights = [weights_of(one) for one in reactions]
        found[key] = groups(reactions, weights)
        if not rewritten:
            found["selection"] = selection(reactions, weights)
            found["per reaction"] = per_reaction(reactions, weights)
        print(key, found[key]["all"]["head"], found[key]["all"]["rivals"], flush=True)
    if asked.quick:
        return
    many = ("610", "610 rewritten", "selection of 610")
    if asked.all:
        found |= measure_many([path.read_text(encoding="utf-8") for path in asked.all], weights_of)
    else:
        found |= {key: datasets.results("atoms")["found"][key] for key in many}
    store("atoms", found=found)


if __name__ == "__main__":
    main()
