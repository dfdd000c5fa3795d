"""The examples of an epoch, and the shares of its batches: how a check reads them."""

from itertools import pairwise

import numpy as np

from attnbook.course.checks.verdict import Wrong, shape_of, show


def numbers_of(got: np.ndarray, n: int, rows: int, world: int, where: str) -> np.ndarray:
    """The answer as integers; Wrong unless they name rows / world of n examples."""
    share = rows // world
    if got.shape != (share,):
        hints: dict[tuple[int, ...], str] = {
            (n % rows,): " What is left over makes no batch: the next epoch begins.",
            (n % rows // world,): " What is left over makes no batch: the next epoch begins.",
            (0,): " An epoch has n // rows steps: which place has this one in its epoch?",
            (rows,): " That is the batch of all workers: take this one's share.",
            (n,): " Those are all examples: take the batch of this step.",
            (world, share): " Those are the shares of all workers: take this one's.",
        }
        given = f"{where} you give {shape_of(got)}, expected ({share},)."
        raise Wrong(f"{given}{hints.get(got.shape, '')}")
    if not np.all((got >= 0) & (got < n) & (got == np.round(got))):
        odd = next(x for x in got if not (0 <= x < n and x == np.round(x)))
        if odd == n and got.min() > 0:
            raise Wrong(f"{where} you give example {n}: count them from 0.")
        raise Wrong(f"{where} {show(odd)} is no number of an example from 0 to {n - 1}.")
    return got.astype(int)


def check_epochs(epochs: list[np.ndarray], n: int, where: str) -> None:
    """Wrong unless each epoch, (steps, rows), visits other examples in each step, newly ordered."""
    for number, epoch in enumerate(epochs):
        if len(set(epoch.ravel())) == epoch.size:
            continue
        if number == 0 and any(len(set(batch)) < batch.size for batch in epoch):
            raise Wrong(f"{where} an example comes twice in one batch: draw without repetition.")
        if number == 0:
            raise Wrong(f"{where} an example comes twice in epoch 0, in two steps: shuffle once "
                        "per epoch, and take its steps one after another.")  # fmt: skip
        begin = len(epoch) * number
        raise Wrong(f"{where} an example comes twice in epoch {number}, though not in epoch 0: "
                    f"step {begin} begins a new order, of which nothing has come.")  # fmt: skip
    first, second = (epoch.ravel().tolist() for epoch in epochs[:2])
    if first == sorted(first):
        raise Wrong(f"{where} epoch 0 has the order of the data: shuffle them.")
    if {frozenset(b) for b in epochs[0]} == {frozenset(b) for b in epochs[1]}:
        same = all(np.array_equal(epoch, epochs[0]) for epoch in epochs)
        raise Wrong(f"{where} epoch 1 repeats the order of epoch 0: where is the epoch?" if same
                    else f"{where} epoch 1 has the batches of epoch 0 again, in another order: "
                    "shuffle examples, not batches.")  # fmt: skip
    if 2 * len(set(pairwise(first)) & set(pairwise(second))) > len(first):
        raise Wrong(f"{where} epoch 1 goes on in the order of epoch 0: draw a new one.")
    never = sorted(set(range(n)) - {int(i) for epoch in epochs for i in epoch.ravel()})
    if never:
        raise Wrong(f"{where} example {never[0]} comes in none of {len(epochs)} epochs: order all "
                    "examples, and let chance say which are left over.")  # fmt: skip


def check_shares(whole: np.ndarray, parts: list[np.ndarray], where: str) -> None:
    """Wrong unless the workers' shares together are the batch that one worker sees."""
    if sorted(np.concatenate(parts)) == sorted(whole):
        return
    if all(set(part) == set(parts[0]) for part in parts):
        raise Wrong(f"{where} all have the same examples: the rank says which are whose.")
    if len(set(np.concatenate(parts))) < len(whole):
        raise Wrong(f"{where} two have the same example: the order must not depend on the rank.")
    raise Wrong(f"{where} the batch is not that of one worker: order the examples as if there "
                "were one worker, then share each batch.")  # fmt: skip
