"""Checks of chapter 10's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call, call_pair
from attnbook_course.checks.verdict import check, expect, one_number


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 10])
    return {
        "n": int(rng.choice([24, 40, 48, 80, 96, 160])),
        "b": int(rng.choice([3, 5, 6, 7])),
        "k": int(rng.integers(5, 30)),
    }


def checks(seed):
    """The check of each exercise, by its label."""
    c = numbers(seed)
    n, b, k = c["n"], c["b"], c["k"]

    @check
    def block_costs(function):
        width = 2.6
        where = f"for a width of {width}"
        first, second = (one_number(part, where) for part in call_pair(function, width))
        step = width / (2**b - 1)
        mistakes = [
            (b, "Scale and least value cost bits too: each number has its share of them."),
            (b + 16 / n, "There are two numbers of 16 bits in a block."),
        ]
        expect(first, b + 32 / n, f"{where}, in the bits,", mistakes, secret=True)
        mistakes = [
            (step, "That is a step: rounding goes to the nearer end of it."),
            (width / 2**b / 2, "Between the values of q is one step fewer than values."),
        ]
        expect(second, step / 2, f"{where}, in the error,", mistakes, secret=True, earned=0.5)
        return "a smaller block costs more bits and has the smaller steps."

    @check
    def sink_score(function):
        keys, a = 17, -0.8
        where = "for n = 17 and a = −0.8"
        mistakes = [
            (a + np.log(k * keys), "The keys keep a share too: solve 1 + e^s/(n e^a) for e^s."),
            (a + np.log(k - 1), "All keys together stand against the sink: where is n?"),
            (a + np.log(keys / (k - 1)), "Turned over: the sink takes all but one part in k."),
            ((k - 1) * keys * np.exp(a), "That is e^s: take the logarithm.", 0.5),
            (a + np.log2((k - 1) * keys), "The logarithm is the natural one.", 0.5),
        ]
        expect(call(function, keys, a), a + np.log((k - 1) * keys), where, mistakes, secret=True)
        return "the more keys there are, the higher a sink must be."

    return {"ho-block-bits": block_costs, "ho-sink-share": sink_score}
