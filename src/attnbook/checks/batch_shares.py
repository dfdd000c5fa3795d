"""The batch of a step, and the shares of it that workers take: how a check reads them."""

import numpy as np

from attnbook.checks.verdict import Wrong, shape_of


def starts(
    got: np.ndarray, tokens: np.ndarray, sizes: tuple[int, int], world: int, where: str
) -> np.ndarray:
    """The places where rows begin; Wrong unless they are so many windows of the tokens."""
    rows, window = sizes
    right = (rows // world, window + 1)
    if got.shape != right:
        hints: dict[tuple[int, ...], str] = {
            (rows // world, window): " Each token has a target: one more.",
            (rows, window + 1): " That is the batch of all workers: take this one's share.",
            (rows // world,): " Give the tokens of each row.",
            right[::-1]: " Is it transposed?",
        }
        given = f"{where} you give {shape_of(got)}, expected {right}."
        raise Wrong(f"{given}{hints.get(got.shape, '')}")
    if not np.all(np.isin(got, tokens)):
        raise Wrong(f"{where} there is a number that is no token of the text.")
    places = np.argsort(tokens)[got.astype(int)]
    if np.any(np.diff(places, axis=1) != 1):
        raise Wrong(f"{where} a row is not {window + 1} tokens that follow one another.")
    return np.asarray(places[:, 0])


def check_shares(whole: np.ndarray, shares: dict[int, list[np.ndarray]]) -> None:
    """Wrong unless the rows of all workers, one after another, are those of one worker."""
    for world, parts in shares.items():
        together = np.concatenate(parts)
        if np.array_equal(together, whole):
            continue
        if all(np.array_equal(part, parts[0]) for part in parts):
            raise Wrong(f"all {world} workers have the same rows: the rank says which are whose.")
        if np.array_equal(together, np.concatenate([whole[r::world] for r in range(world)])):
            raise Wrong("you deal rows out one by one: worker 0 has the first ones, and so on.")
        if np.array_equal(together, whole.reshape(world, -1)[::-1].ravel()):
            raise Wrong("worker 0 has the last rows: it should have the first.")
        raise Wrong(f"{world} workers see other rows than one: draw all rows from seed and step, "
                    "then take a share.")  # fmt: skip
