"""Checks of chapter 12's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import Wrong, check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 12])
    b = int(rng.choice([16, 24, 32, 48]))
    return {
        "b": b,
        "d": int(rng.integers(3, 6)) * b + int(rng.integers(b // 4, 3 * b // 4)),
        "c": int(rng.integers(6, 30)) / 10,
        "k": int(rng.choice([2, 3, 4, 5])),
    }


def checks(seed):
    """The check of each exercise, by its label."""
    given = numbers(seed)
    b, d, c, k = (given[name] for name in "bdck")

    @check
    def document_blocks(function):
        for rows in (17, 40):
            row = np.arange(rows)
            start = row * b // d * d
            right = np.sum(row - start // b + 1)
            back = "The first query sees back to the block in which its document begins."
            window = "That is a window of this length: a document ends."
            mistakes = [
                (rows**2, "Those are all blocks: most of them are hidden."),
                (np.sum(row - -(-start // b) + 1), back),
                (np.sum(np.minimum(row, d // b) + 1), window),
                (right - rows, "The blocks on the diagonal are visited too.", 0.5),
            ]
            expect(call(function, rows), right, f"for {rows} rows", mistakes, secret=True)
        return "documents that end inside a block cost what they do not use."

    @check
    def with_older_part(function):
        x, y = 0.8, -1.1
        for p, q in ((1.2, 1.9), (1001.2, 1001.9)):
            where = f"for log-sum-exps of {p} and {q}"
            got = call(function, x, p, y, q)
            if not np.all(np.isfinite(got)):
                words = "you give no number: only differences go into exp."
                raise Wrong(f"{where} {words}", earned=0.6 if p > 1000 else 0)

            def share(by, p=p, q=q):
                """Of the second part, if its log-sum-exp grows by so much."""
                return 1 / (1 + np.exp(p - q - by))

            w, old = share(-c), share(0)
            off = "The number is taken off the scores, not off values."
            mistakes = [
                ((1 - old) * x + old * k * y, "Lower scores lower the log-sum-exp by as much."),
                ((1 - share(c)) * x + share(c) * k * y, "The sign: lower scores sum to less.", 0.5),
                ((1 - w) * x + w * y, "The older part's average is multiplied, as its values."),
                ((1 - w) * x + w * k * (y - c), off),
            ]
            expect(got, (1 - w) * x + w * k * y, where, mistakes, secret=True)
        return "a shift of all scores moves one number, and a scale of all values the other."

    return {"ho-document-blocks": document_blocks, "ho-older-part": with_older_part}
