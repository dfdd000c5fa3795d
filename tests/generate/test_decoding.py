"""Greedy decoding and beam search, on tables of probabilities that one can search through."""

import itertools
import math
import re

import numpy as np
import pytest
from layer_harness import Library

from attnbook.generate import sampling
from attnbook.generate.decoding import beam, greedy

START, END, VOCAB = 2, 0, 3
HOW = {"start": START, "end": END, "limit": 3}
WORDS = 5  # of a source


@pytest.fixture(params=["torch", "jax"])
def library(request):
    return Library(request.param).backend


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
    mask = np.tile(np.arange(WORDS) < 3, (len(words), 1))
    return library.array(given), library.array(mask)


def search(library, logits, word=0, *, limit=4, width=2):
    given, mask = source(library, [word])
    model = Table(library, logits)
    return beam(model, given[0], mask[0], start=START, end=END, limit=limit, width=width)


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
    how = {"start": START, "end": END, "limit": 5}
    written, read = greedy(model, *source(library, words, dtype), **how)
    rows = [followed(logits, word, 5) for word in words]
    assert {1, 2, 5} <= {len(row) for row in rows}
    assert written.tolist() == [row + [END] * (5 - len(row)) for row in rows]
    assert (type(written), written.dtype) == (np.ndarray, dtype)
    for word, row in zip(words, rows, strict=True):
        for i in range(len(row)):
            before = code(word, row[:i])
            assert read[word, i].tolist() == [before] * 3 + [-before] * 2
    assert model.steps == [[START] * 11, *written[:, :-1].T.tolist()]


@pytest.mark.parametrize(("ends_after", "steps"), [(2, 3), (None, 4)])
def test_greedy_stops_when_all_have_ended_or_at_the_limit(library, rng, ends_after, steps):
    logits = table(rng, 11, 5)
    logits[:, END] = -99
    if ends_after:
        rows = itertools.product(range(11), itertools.product((1, 2), repeat=ends_after))
        logits[[code(word, row) for word, row in rows], END] = 99
    model = Table(library, logits)
    written, read = greedy(model, *source(library, range(11)), start=START, end=END, limit=4)
    assert (written.shape, read.shape, len(model.steps)) == ((11, steps), (11, steps, WORDS), steps)
    assert np.all((written == END)[:, -1] == bool(ends_after))
    assert ends_after or END not in written


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


@pytest.mark.parametrize(
    ("width", "limit", "ends"), [(1, 4, True), (2, 3, True), (5, 3, True), (2, 3, False)]
)
def test_every_width_equals_the_lists(library, rng, width, limit, ends):
    """One that ends leaves the beam, and its place stays empty; without an end, the beginnings."""
    logits = table(rng, 3, limit)
    if not ends:
        logits[:, END] = -99
    for word in range(3):
        found = search(library, logits, word, limit=limit, width=width)
        expected = reference_beam(logits, word, limit, width)
        assert [tokens for tokens, _ in found] == [tokens for _, tokens in expected]
        np.testing.assert_allclose([p for _, p in found], [p for p, _ in expected], rtol=1e-12)


def test_large_logits_in_float32(library, rng):
    """Log-probabilities are float64's, whatever the model's dtype, and nothing overflows."""
    logits, expected = (1000 * table(rng)).astype(np.float32), 0.0
    ((tokens, probability), *_) = search(library, logits, width=3)
    for i, token in enumerate(tokens):
        row = logits[code(0, tokens[:i])].astype(np.float64)
        expected += row[token] - row.max() - np.log(np.exp(row - row.max()).sum())
    np.testing.assert_allclose(probability, expected, rtol=1e-12, atol=1e-12)


TRANSLATORS = {"EncoderDecoder": (3, 4), "Transformer": (7, 6, 2, 5, 1)}
each = pytest.mark.parametrize("name", TRANSLATORS)


def made(library, name, vocab=300, target=11):
    return Library(library.name).make(name, vocab, target, *TRANSLATORS[name])


def words(library, *shape):
    source = library.array(np.ones(shape, int))
    return source, source > 0


@each
def test_models_in_bfloat16_write(library, name):
    """NumPy has no such numbers: what comes back is float32."""
    layer, (source, mask) = made(library, name), words(library, 2, 3)
    if library.name == "torch":
        layer = layer.bfloat16()
    else:
        layer = library.jax.tree.map(lambda a: a.astype("bfloat16"), layer)
    assert greedy(layer, source, mask, **HOW)[1].dtype == np.float32
    found = beam(layer, source[0], mask[0], **HOW, width=2)
    assert all(np.isfinite(probability) for _, probability in found)


@pytest.mark.parametrize("name", [*TRANSLATORS, "DecoderOnly"])
def test_writing_keeps_no_graph(name):
    """Nothing is saved for a gradient; the mode stays as it was."""
    library, saved = Library("torch"), []
    torch = library.backend.xp
    if name == "DecoderOnly":
        model = library.make(name, 300, 7, 6, 2, 5, 1).train()
    else:
        model = made(library.backend, name).train()
    keep = torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t)
    with keep:
        if name == "DecoderOnly":
            sampling.sample(model, [1, 2], 3)
        else:
            source, mask = words(library.backend, 2, 3)
            greedy(model, source, mask, **HOW)
            beam(model, source[0], mask[0], **HOW, width=2)
    assert not saved
    assert model.training and torch.is_grad_enabled()


@each
def test_targets_are_not_of_the_sources_dtype(library, name):
    """A source of small integers, and targets whose numbers they cannot hold."""
    model = made(library, name, 9, 70_000)
    numbers = np.array([[1, 2, 8], [3, 1, 1]])
    small, wide = library.array(numbers.astype("uint8")), library.array(numbers)
    how = HOW | {"start": 69_999}
    written, _ = greedy(model, small, small > 0, **how)
    np.testing.assert_array_equal(written, greedy(model, wide, wide > 0, **how)[0])
    assert (written.max() > 255, written.dtype) == (True, "int32")
    found = beam(model, small[0], small[0] > 0, **how, width=1)
    assert found[0][0] == written[0, : len(found[0][0])].tolist()


@each
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"start": 1.7}, r"start: got 1\.7, expected an integer"),
        ({"start": 99}, "token: got 99 to 99, expected 0 to 10"),
        ({"end": 11}, "end: got 11, expected "),
        ({"limit": 0}, "limit: got 0, expected an integer, 1 or more"),
    ],
)
def test_starts_and_ends_are_tokens(library, name, how, message):
    model, (source, mask) = made(library, name), words(library, 2, 3)
    with pytest.raises(ValueError, match=message):
        greedy(model, source, mask, **(HOW | how))
    with pytest.raises(ValueError, match=message):
        beam(model, source[0], mask[0], **(HOW | how), width=2)


def test_sources_of_other_shapes_and_other_models(library):
    """Five words are no batch of five; a batch of none has nothing to write."""
    model = made(library, "Transformer")
    for shape in ((5,), (0, 3)):
        message = f"source: got shape {shape}, expected (b, n), one row"
        with pytest.raises(ValueError, match="^" + re.escape(message)):
            greedy(model, *words(library, *shape), **HOW)
    source, mask = words(library, 2, 3)
    with pytest.raises(ValueError, match=r"^source: got shape \(2, 3\), expected \(n,\), one sent"):
        beam(model, source, mask, **HOW, width=2)
    with pytest.raises(ValueError, match="width: got 0, expected an integer, 1 or more"):
        beam(model, source[0], mask[0], **HOW, width=0)
