"""Greedy decoding and beam search, on tables of probabilities that one can search through."""

import itertools
import math
import re
from typing import Any, NamedTuple

import backends
import numpy as np
import pytest
import reference_recurrent
from layer_harness import Library

from attnbook.generate.decoding import beam, greedy

START, END, LETTERS, VOCAB = 2, 0, (1, 2), 3
WORDS = 5  # of a source


@pytest.fixture(params=["torch", "jax"])
def library(request):
    reference_recurrent.skip_unless(request.param)
    return backends.load(request.param)


class Table:
    """A model by its table: row `code` holds the logits after the beginning of that code.

    A beginning's code is the source's first word, then one digit a token, in base VOCAB + 1.
    """

    def __init__(self, library, logits):
        self.library, self.logits = library, library.array(logits)
        self.steps = []

    def encode(self, source, mask):
        assert tuple(source.shape) == tuple(mask.shape)
        return mask, source[:, :1]

    def step(self, mask, state, token):
        assert str(token.dtype) == str(state.dtype)
        self.steps.append(self.library.numpy(token).tolist())
        code = state * (VOCAB + 1) + token[:, None] + 1
        weights = self.library.xp.where(mask, code, -code)  # any numbers that tell the step
        return code, self.logits[code[:, 0]], weights


class State(NamedTuple):
    """The code again, cut into a number of its tens and one of its units, which is nested."""

    tens: Any
    units: Any


class Split(Table):
    """The same model with a state of several arrays, of different dtypes and numbers of axes."""

    def encode(self, source, mask):
        memory, code = super().encode(source, mask)
        return memory, self.cut(code)

    def cut(self, code):
        units = self.library.xp.reshape(code % 10, (-1, 1, 1, 1))
        return State(code // 10, State(units, self.library.cast(code[:, 0], "int32")))

    def step(self, mask, state, token):
        tens, (units, again) = state
        assert type(state) is type(state.units) is State
        code = 10 * tens + units[:, 0, 0]
        assert self.library.numpy(code)[:, 0].tolist() == self.library.numpy(again).tolist()
        code, logits, weights = super().step(mask, code, token)
        return self.cut(code), logits, weights


def code(word, tokens):
    """Of what has been fed: START, then the tokens."""
    number = word
    for token in (START, *tokens):
        number = number * (VOCAB + 1) + token + 1
    return number


def table(rng, words=2, limit=4):
    """Logits for every beginning below the limit."""
    return 2 * rng.normal(size=(code(words, [VOCAB - 1] * limit), VOCAB))


def log_probability(logits, word, tokens):
    """Of the tokens, one after the other."""
    total = 0.0
    for i, token in enumerate(tokens):
        row = logits[code(word, tokens[:i])].tolist()
        total += row[token] - math.log(math.fsum(map(math.exp, row)))
    return total


def source(library, words, dtype="int64"):
    """Sentences that begin with these words."""
    given = np.zeros((len(words), WORDS), dtype=dtype)
    given[:, 0] = words
    mask = np.ones((len(words), WORDS), dtype=bool)
    mask[:, 3:] = False
    return library.array(given), library.array(mask)


def search(library, logits, word=0, *, limit=4, width=2, **how):
    given, mask = source(library, [word], **how)
    model = Table(library, logits)
    found = beam(model, given[0], mask[0], start=START, end=END, limit=limit, width=width)
    assert all(type(t) is int for tokens, _ in found for t in tokens)
    assert all(type(p) is float for _, p in found)
    return found


def followed(logits, word, limit):
    """Greedy decoding of one sentence, token by token."""
    tokens = []
    while len(tokens) < limit and END not in tokens:
        tokens.append(int(np.argmax(logits[code(word, tokens)])))
    return tokens


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_greedy_follows_every_row_to_its_end(library, rng, dtype):
    """Tokens, END behind the end, and the weights with which each was written."""
    logits, words = table(rng, 11, 5), np.arange(11)
    model = Table(library, logits)
    written, read = greedy(model, *source(library, words, dtype), start=START, end=END, limit=5)
    rows = [followed(logits, word, 5) for word in words]
    lengths = [len(row) for row in rows]
    assert {1, 2, 5} <= set(lengths)
    assert written.tolist() == [row + [END] * (5 - len(row)) for row in rows]
    assert (type(written), written.dtype, type(read)) == (np.ndarray, dtype, np.ndarray)
    assert read.shape == (11, 5, WORDS)
    for word, row in zip(words, rows, strict=True):
        for i in range(len(row)):
            before = code(word, row[:i])
            assert read[word, i].tolist() == [before] * 3 + [-before] * 2
    assert model.steps[0] == [START] * 11
    assert model.steps[1:] == written[:, :-1].T.tolist()


def test_greedy_stops_when_all_have_ended(library, rng):
    logits = table(rng, 11, 5)
    logits[[code(word, row) for word in range(11) for row in itertools.product(LETTERS, repeat=2)], END] = 99  # fmt: skip
    model = Table(library, logits)
    written, read = greedy(model, *source(library, range(11)), start=START, end=END, limit=5)
    assert written.shape == (11, 3)
    assert read.shape == (11, 3, WORDS)
    assert len(model.steps) == 3
    np.testing.assert_array_equal(written[:, -1], END)


def test_greedy_ends_at_the_limit(library, rng):
    """Nothing ends: the most probable letters, as many as allowed."""
    logits = table(rng, 11, 5)
    logits[:, END] = -99
    for limit in (1, 2, 4):
        written, _ = greedy(
            Table(library, logits), *source(library, range(11)), start=START, end=END, limit=limit
        )
        assert written.tolist() == [followed(logits, word, limit) for word in range(11)]
        assert END not in written


def test_a_beam_of_one_is_greedy(library, rng):
    logits = table(rng, 7, 4)
    written, _ = greedy(
        Table(library, logits), *source(library, range(7)), start=START, end=END, limit=4
    )
    for word, row in enumerate(written.tolist()):
        ((tokens, probability),) = search(library, logits, word, width=1)
        assert tokens + [END] * (4 - len(tokens)) == row
        np.testing.assert_allclose(probability, log_probability(logits, word, tokens), rtol=1e-12)


def test_a_wide_beam_finds_all_in_their_order(library, rng):
    """Every sequence that ends within the limit, with its log-probability; none that does not."""
    for word in range(2):
        logits = table(rng)
        ending = [
            [*row, END] for n in range(4) for row in itertools.product(LETTERS, repeat=n)
        ]  # 1 + 2 + 4 + 8
        expected = sorted(((log_probability(logits, word, e), e) for e in ending), reverse=True)
        found = search(library, logits, word, width=31)
        assert [tokens for tokens, _ in found] == [tokens for _, tokens in expected]
        probabilities = [p for _, p in found]
        np.testing.assert_allclose(probabilities, [p for p, _ in expected], rtol=1e-12)


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_a_state_of_several_arrays(library, rng, width):
    """Every part of it follows its beginning."""
    logits = table(rng, 3, 3)
    for word in range(3):
        given, mask = source(library, [word])
        found = beam(Split(library, logits), given[0], mask[0], start=START, end=END, limit=3, width=width)  # fmt: skip
        assert found == search(library, logits, word, limit=3, width=width)
    given, mask = source(library, range(3))
    how = {"start": START, "end": END, "limit": 3}
    for ours, theirs in zip(
        greedy(Split(library, logits), given, mask, **how),
        greedy(Table(library, logits), given, mask, **how),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


def reference_beam(logits, word, limit, width):
    """The same as lists that are sorted."""
    beam, ended = [(0.0, [])], []
    for _ in range(limit):
        longer = [
            (log_probability(logits, word, [*tokens, t]), [*tokens, t])
            for _, tokens in beam
            for t in range(VOCAB)
        ]
        kept = sorted(longer, reverse=True)[: width - len(ended)]
        ended += [pair for pair in kept if pair[1][-1] == END]
        beam = [pair for pair in kept if pair[1][-1] != END]
        if not beam:
            break
    return sorted(ended or beam, reverse=True)


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_every_width_equals_the_lists(library, rng, width, dtype):
    """One that ends leaves the beam, and its place stays empty."""
    logits = table(rng, 3, 3)
    wider = False
    for word in range(3):
        found = search(library, logits, word, limit=3, width=width, dtype=dtype)
        expected = reference_beam(logits, word, 3, width)
        assert [tokens for tokens, _ in found] == [tokens for _, tokens in expected]
        np.testing.assert_allclose([p for _, p in found], [p for p, _ in expected], rtol=1e-12)
        wider |= len(found) < width
    assert wider or width == 2


def trap():
    """0.6 for the first letter, whose ends have 0.3 each at most; 0.4 for the second, ends 0.9."""
    p = np.full((code(0, [2, 2, 2]), VOCAB), 1 / 3)
    p[code(0, [])] = [1e-9, 0.6, 0.4]
    p[code(0, [1])] = [0.4, 0.3, 0.3]
    p[code(0, [2])] = [0.9, 0.05, 0.05]
    return np.log(p / p.sum(-1, keepdims=True))


def test_the_greedy_trap(library):
    """The most probable first letter begins nothing that is probable: a beam of two gets out."""
    logits = trap()
    written, _ = greedy(
        Table(library, logits), *source(library, [0]), start=START, end=END, limit=3
    )
    assert written.tolist() == [[1, END]]
    ((tokens, probability),) = search(library, logits, width=1)
    assert tokens == [1, END]
    np.testing.assert_allclose(math.exp(probability), 0.6 * 0.4, rtol=1e-8)
    (best, probability), (second, less) = search(library, logits, width=2)
    assert (best, second) == ([2, END], [1, END])
    np.testing.assert_allclose(math.exp(probability), 0.4 * 0.9, rtol=1e-8)
    np.testing.assert_allclose(math.exp(less), 0.6 * 0.4, rtol=1e-8)


def test_where_nothing_ends_the_beginnings_come(library, rng):
    logits = table(rng)
    logits[:, END] = -99
    found = search(library, logits, limit=3, width=2)
    assert [tokens for tokens, _ in found] == [t for _, t in reference_beam(logits, 0, 3, 2)]
    for tokens, probability in found:
        assert len(tokens) == 3
        assert END not in tokens
        expected = log_probability(logits, 0, tokens)
        np.testing.assert_allclose(probability, expected, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 1000])
def test_logits_in_float32(library, rng, size):
    """Log-probabilities are float64's, whatever the model's dtype, and nothing overflows."""
    logits = (size * table(rng)).astype(np.float32)
    ((tokens, probability), *_) = search(library, logits, width=3)
    expected = 0.0
    for i, token in enumerate(tokens):
        row = logits[code(0, tokens[:i])].astype(np.float64)
        expected += row[token] - row.max() - np.log(np.exp(row - row.max()).sum())
    np.testing.assert_allclose(probability, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("number", [0, -1, 2.5])
def test_a_width_and_a_limit_are_sizes(library, number):
    message = f"got {number}, expected an integer, 1 or more"
    with pytest.raises(ValueError, match=f"width: {message}"):
        search(library, trap(), width=number)
    with pytest.raises(ValueError, match=f"limit: {message}"):
        search(library, trap(), limit=number)
    with pytest.raises(ValueError, match=f"limit: {message}"):
        greedy(Table(library, trap()), *source(library, [0]), start=START, end=END, limit=number)


@pytest.mark.parametrize("name", ["EncoderDecoder", "Transformer", "DecoderOnly"])
def test_models_in_bfloat16_write(library, name):
    """NumPy has no such numbers: what comes back is float32."""
    from attnbook.generate import sampling

    made = Library(library.name)
    layer = made.make(name, *{"EncoderDecoder": (5, 11, 3, 4), "Transformer": (5, 11, 7, 6, 2, 5, 1), "DecoderOnly": (5, 7, 6, 2, 5, 1)}[name])  # fmt: skip
    if library.name == "torch":
        layer = layer.bfloat16()
    else:
        layer = library.jax.tree.map(
            lambda a: a.astype("bfloat16") if hasattr(a, "astype") else a, layer
        )
    if name == "DecoderOnly":
        text = sampling.sample(layer, [1], 3)
        assert text.shape == (4,)
        return
    source = library.array(np.ones((2, 3), int))
    written, weights = greedy(layer, source, source > 0, start=2, end=0, limit=3)
    assert written.shape[0] == 2
    assert weights.dtype == np.float32
    found = beam(layer, source[0], source[0] > 0, start=2, end=0, limit=3, width=2)
    assert all(np.isfinite(probability) for _, probability in found)


MADE = {"EncoderDecoder": (300, 11, 3, 4), "Transformer": (300, 11, 7, 6, 2, 5, 1), "DecoderOnly": (300, 7, 6, 2, 5, 1)}  # fmt: skip
TRANSLATORS = ("EncoderDecoder", "Transformer")


def words(library, *shape):
    source = library.array(np.ones(shape, int))
    return source, source > 0


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", MADE)
def test_writing_keeps_no_graph(name, training, grad):
    """Nothing is saved for a gradient, no step gives what has one; modes stay as they were."""
    from attnbook.generate import sampling

    made = Library("torch")
    torch = made.backend.xp
    model = made.make(name, *MADE[name]).train(training)
    saved, step, given = [], model.step, []

    def watched(*args):
        out = step(*args)
        given.extend(part for part in out if isinstance(part, torch.Tensor))
        return out

    model.step = watched
    with (
        torch.set_grad_enabled(grad),
        torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t),
    ):
        if name == "DecoderOnly":
            sampling.sample(model, [1, 2], 3)
        else:
            source, mask = words(made.backend, 2, 3)
            greedy(model, source, mask, start=2, end=0, limit=3)
            beam(model, source[0], mask[0], start=2, end=0, limit=3, width=2)
        assert torch.is_grad_enabled() == grad
    assert given
    assert not any(part.requires_grad for part in given)
    assert not saved
    assert model.training == training
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", TRANSLATORS)
def test_targets_are_not_of_the_sources_dtype(library, name, dtype):
    """A source of small integers, and targets whose numbers they cannot hold."""
    made = Library(library.name)
    many = {"EncoderDecoder": (9, 70_000, 3, 4), "Transformer": (9, 70_000, 4, 6, 2, 5, 1)}
    model = made.make(name, *many[name])
    source = made.moved(np.array([[1, 2, 8], [3, 1, 1]], dtype))
    how = {"start": 69_999, "end": 0, "limit": 3}
    written, _ = greedy(model, source, source > 0, **how)
    wide = made.moved(np.array([[1, 2, 8], [3, 1, 1]], "int64"))
    np.testing.assert_array_equal(written, greedy(model, wide, wide > 0, **how)[0])
    assert written.max() > 255
    assert written.dtype == (dtype if dtype in ("int32", "int64") else "int32")
    found = beam(model, source[0], source[0] > 0, **how, width=1)
    assert found[0][0] == written[0, : len(found[0][0])].tolist()


@pytest.mark.parametrize("name", TRANSLATORS)
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"start": 1.7}, r"start: got 1\.7, expected an integer$"),
        ({"start": "x"}, "start: got 'x', expected an integer$"),
        ({"start": None}, "start: got None, expected an integer$"),
        ({"start": -5}, "token: got -5 to -5, expected 0 to 10"),
        ({"start": 99}, "token: got 99 to 99, expected 0 to 10"),
        ({"end": 99}, "end: got 99, expected 0 to 10"),
        ({"end": 11}, "end: got 11, expected 0 to 10"),
        ({"end": -5}, "end: got -5, expected 0 to 10"),
        ({"end": 1.7}, r"end: got 1\.7, expected 0 to 10"),
        ({"end": "x"}, "end: got 'x', expected 0 to 10"),
        ({"limit": True}, "limit: got True, expected an integer, 1 or more"),
    ],
)
def test_starts_and_ends_are_tokens(library, name, how, message):
    model = Library(library.name).make(name, *MADE[name])
    source, mask = words(library, 2, 3)
    how = {"start": 2, "end": 0, "limit": 3} | how
    with pytest.raises(ValueError, match=message):
        greedy(model, source, mask, **how)
    with pytest.raises(ValueError, match=message):
        beam(model, source[0], mask[0], **how, width=2)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_sources_of_other_shapes(library, name):
    """Five words are no batch of five; a batch of none has nothing to write."""
    model = Library(library.name).make(name, *MADE[name])
    how = {"start": 2, "end": 0, "limit": 3}
    for shape in ((5,), (2, 2, 3), (0, 3), ()):
        got = re.escape(str(shape))
        with pytest.raises(
            ValueError, match=rf"^source: got shape {got}, expected \(b, n\), one row"
        ):
            greedy(model, *words(library, *shape), **how)
    for shape in ((2, 3), ()):
        got = re.escape(str(shape))
        with pytest.raises(
            ValueError, match=rf"^source: got shape {got}, expected \(n,\), one sent"
        ):
            beam(model, *words(library, *shape), **how, width=2)
    source, mask = words(library, 2, 3)
    for wrong in ((source, None), ([[1, 2]], mask)):
        with pytest.raises(
            TypeError, match=r"^(mask|source): got a \w+, expected a NumPy, PyTorch or"
        ):
            greedy(model, *wrong, **how)
        with pytest.raises(
            TypeError, match=r"^(mask|source): got a \w+, expected a NumPy, PyTorch or"
        ):
            beam(model, *wrong, **how, width=2)


@pytest.mark.parametrize("stranger", ["DecoderOnly", "Linear", None, "a class"])
def test_models_that_do_not_translate(library, stranger):
    made = Library(library.name)
    model = {"DecoderOnly": made.make("DecoderOnly", *MADE["DecoderOnly"]), "a class": made.module.Transformer}.get(stranger, stranger)  # fmt: skip
    source, mask = words(library, 2, 3)
    message = r"^model: got a \w+, expected an EncoderDecoder or a Transformer$"
    with pytest.raises(TypeError, match=message):
        greedy(model, source, mask, start=2, end=0, limit=3)
    with pytest.raises(TypeError, match=message):
        beam(model, source[0], mask[0], start=2, end=0, limit=3, width=2)
