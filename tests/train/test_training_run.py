"""What both trainings share: the batches, the rates, the history, and what ends one early."""

import math

import numpy as np
import pytest

from attnbook.train import training


def play(losses, learning_rate=0.1, gate=None):
    """run() with losses known beforehand; the rates that it asked for."""
    rates, batches = [], [(np.array([x]),) for x in losses]

    def step(batch, rate):
        rates.append(rate)
        return np.float64(batch[0][0])

    try:
        return training.run(step, batches, learning_rate, gate, "play"), rates
    except training.TrainingFailed as failed:
        return str(failed), rates


def test_the_rates_go_to_their_steps():
    assert play([1.0] * 3, [0.3, 0.2, 0.1])[1] == [0.3, 0.2, 0.1]
    assert play([1.0] * 3, 0.3)[1] == [0.3] * 3


BAD_RATES = [-0.1, math.nan, math.inf, None, "0.1", "x", True, 1j]
BAD_LISTS = [[], [[0.1]], [0.1, -0.1], [0.1, None]]


@pytest.mark.parametrize("rate", BAD_RATES + BAD_LISTS)
def test_bad_rates(rate):
    with pytest.raises(ValueError, match=r"learning_rate: got .*, expected numbers, 0 or more"):
        play([1.0], rate)


def count(losses, learning_rate=0.1, gate=None, *, of=iter):
    """How many steps are made before what is wrong is said, and that."""
    made = []
    batches = of([(np.array([x]),) for x in losses])
    with pytest.raises((ValueError, TypeError)) as raised:
        training.run(lambda batch, rate: made.append(1) or 1.0, batches, learning_rate, gate, "")
    return len(made), str(raised.value)


def test_as_many_rates_as_batches():
    """Before the first step, where the number of batches is known; else as soon as it is."""
    message = "learning_rate: got 2 numbers, expected one a batch"
    assert count([1.0] * 3, [0.1, 0.1], of=list) == (0, f"{message}, of which there are 3")
    assert count([1.0] * 3, [0.1, 0.1]) == (2, message)
    message = "learning_rate: got 4 numbers, expected one a batch, of which there are 3"
    assert count([1.0] * 3, [0.1] * 4, of=list) == (0, message)
    assert count([1.0] * 3, [0.1] * 4) == (3, message)


def test_a_gate_that_is_never_reached():
    message = "gate: got 4 steps, expected at most 3, those of the run"
    assert count([1.0] * 3, gate=(4, 1.0), of=list) == (0, message)
    assert count([1.0] * 3, gate=(4, 1.0)) == (3, message)
    assert len(play([1.0] * 3, gate=(3, 1.0))[1]) == 3


def test_no_batches():
    for batches in ([], iter(())):
        with pytest.raises(ValueError, match="batches: got none, expected at least one"):
            training.run(lambda batch, rate: 1.0, batches, 0.1, None, "none")


def test_history_keeps_every_loss():
    losses = np.random.default_rng(0).normal(size=47)
    history, _ = play(losses)
    np.testing.assert_array_equal(history.losses, losses)
    assert 0 <= history.first_seconds <= history.cpu_seconds


@pytest.mark.parametrize(("at", "steps"), [(0, 1), (20, 21), (3, 21), (29, 30)])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_ends_it(at, steps, bad):
    """At once where the loss is looked at, every 20 steps, and at the end at the latest."""
    losses = [1.0] * at + [bad] * (30 - at)
    message, rates = play(losses)
    assert message.startswith(f"the loss is {bad} by step")
    assert len(rates) == steps


def test_the_gate():
    """25 steps, the mean of the last 20 of them: 5 of 10 do not count, 19 of 1 and one of 3 are 1.1."""
    losses = [10.0] * 5 + [1.0] * 19 + [3.0] + [9.0] * 5
    for least in (1.1, 1.2, 9.0):
        assert len(play(losses, gate=(25, least))[1]) == 30
    message, rates = play(losses, gate=(25, 1.09))
    assert message == "the loss is 1.1 after 25 steps, expected 1.09 or less"
    assert len(rates) == 25
    assert len(play(losses, gate=(1, 9.9))[1]) == 1


def draw(seed=0, size=7, steps=11):
    x = np.arange(13)
    return list(training.minibatches((x, 10 * x[:, None]), size=size, steps=steps, seed=seed))


def test_batches_are_rows_without_repeats():
    batches = draw()
    assert len(batches) == 11
    for x, y in batches:
        assert len(np.unique(x)) == 7
        np.testing.assert_array_equal(y, 10 * x[:, None])
    assert len({tuple(x) for x, _ in batches}) == 11  # drawn anew
    assert set(np.concatenate([x for x, _ in batches])) == set(range(13))
    np.testing.assert_array_equal(np.sort(draw(size=13)[0][0]), np.arange(13))


def test_a_seed_settles_the_batches():
    for a, b, c in zip(draw(), draw(), draw(seed=1), strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        assert np.any(a[0] != c[0])


def test_rates_rise_and_fall_by_hand():
    """Half a cosine from the peak to almost 0; a straight rise in front multiplies it."""
    out = training.warm_cosine(0.8, 4)
    np.testing.assert_allclose(out, 0.4 * (1 + np.array([1, 0.5**0.5, 0, -(0.5**0.5)])), rtol=1e-14)
    warm = training.warm_cosine(0.8, 4, warmup=3)
    np.testing.assert_allclose(warm, out * [1 / 3, 2 / 3, 1, 1], rtol=1e-14)
    np.testing.assert_array_equal(training.warm_cosine(0.8, 4, warmup=1), out)
    np.testing.assert_array_equal(training.warm_cosine(3.0, 1), [3.0])
    np.testing.assert_allclose(training.warm_cosine(1.0, 2, warmup=2), [1 / 2, 1 / 2], rtol=1e-14)


def test_step_batch_is_the_loop():
    tokens = np.arange(100) % 7
    arguments = {"tokens": tokens, "step": 40, "rows": 4, "window": 5, "seed": 3}
    batch = training.step_batch(**arguments)
    first = np.random.default_rng([3, 40]).integers(0, 95, size=4)
    for row, start in zip(batch, first, strict=True):
        assert row.tolist() == [tokens[start + i] for i in range(6)]
    for other in ({"seed": 4}, {"step": 41}):
        assert (training.step_batch(**(arguments | other)) != batch).any()
    last = training.step_batch(np.arange(6), 1, rows=9, window=5, seed=0)
    np.testing.assert_array_equal(last, np.tile(np.arange(6), (9, 1)))  # the only window there is
    for wrong in ({"rows": 0}, {"window": 100}, {"seed": -1}, {"step": 0.5}, {"tokens": "words"}):
        with pytest.raises(ValueError, match=r"got .*, expected"):
            training.step_batch(**(arguments | wrong))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 7, 0), "peak: got 0.0, expected a number above 0"),
        ((0.1, 0, 0), "steps: got 0, expected an integer, 1 or more"),
        ((0.1, 7, 8), "warmup: got 8, expected 0 to 7"),
    ],
)
def test_rises_and_falls_that_cannot_be(arguments, message):
    peak, steps, warmup = arguments
    with pytest.raises(ValueError, match=message):
        training.warm_cosine(peak, steps, warmup=warmup)
