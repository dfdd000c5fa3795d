"""Greedy decoding and beam search, on tables of probabilities that one can search through."""

import itertools
import math
import re
from typing import Any, NamedTuple

import numpy as np
import pytest
from layer_harness import Library

from attnbook.generate import sampling
from attnbook.generate.decoding import beam, greedy

START, END, LETTERS, VOCAB = 2, 0, (1, 2), 3
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


def greedily(library, logits, words, limit, dtype="int64"):
    """The model that wrote, its tokens and its weights."""
    model = Table(library, logits)
    given = source(library, words, dtype)
    return model, *greedy(model, *given, start=START, end=END, limit=limit)


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
    model, written, read = greedily(library, logits, words, 5, dtype)
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
    pairs = list(itertools.product(LETTERS, repeat=2))
    logits[[code(word, row) for word in range(11) for row in pairs], END] = 99
    model, written, read = greedily(library, logits, range(11), 5)
    assert written.shape == (11, 3)
    assert read.shape == (11, 3, WORDS)
    assert len(model.steps) == 3
    np.testing.assert_array_equal(written[:, -1], END)


def test_greedy_ends_at_the_limit(library, rng):
    """Nothing ends: the most probable letters, as many as allowed."""
    logits = table(rng, 11, 5)
    logits[:, END] = -99
    for limit in (1, 2, 4):
        _, written, _ = greedily(library, logits, range(11), limit)
        assert written.tolist() == [followed(logits, word, limit) for word in range(11)]
        assert END not in written


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_a_state_of_several_arrays(library, rng, width):
    """Every part of it follows its beginning."""
    logits = table(rng, 3, 3)
    for word in range(3):
        given, mask = source(library, [word])
        found = beam(Split(library, logits), given[0], mask[0], **HOW, width=width)
        assert found == search(library, logits, word, limit=3, width=width)
    found = greedy(Split(library, logits), *source(library, range(3)), **HOW)
    for ours, theirs in zip(found, greedily(library, logits, range(3), 3)[1:], strict=True):
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


@pytest.mark.parametrize(
    ("width", "limit", "ends"),
    [(1, 4, True), (2, 3, True), (3, 3, True), (5, 3, True), (31, 4, True), (2, 3, False)],
)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_every_width_equals_the_lists(library, rng, width, limit, ends, dtype):
    """One that ends leaves the beam, and its place stays empty; all that ends fits into 31."""
    logits = table(rng, 3, limit)
    if not ends:
        logits[:, END] = -99
    wider = False
    for word in range(3):
        found = search(library, logits, word, limit=limit, width=width, dtype=dtype)
        expected = reference_beam(logits, word, limit, width)
        assert [tokens for tokens, _ in found] == [tokens for _, tokens in expected]
        np.testing.assert_allclose([p for _, p in found], [p for p, _ in expected], rtol=1e-12)
        wider |= len(found) < width
        assert len(found) == 15 or width < 31
    assert wider or width <= 2


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
    assert greedily(library, logits, [0], 3)[1].tolist() == [[1, END]]
    ((tokens, probability),) = search(library, logits, width=1)
    assert tokens == [1, END]
    np.testing.assert_allclose(math.exp(probability), 0.6 * 0.4, rtol=1e-8)
    (best, probability), (second, less) = search(library, logits, width=2)
    assert (best, second) == ([2, END], [1, END])
    np.testing.assert_allclose(math.exp(probability), 0.4 * 0.9, rtol=1e-8)
    np.testing.assert_allclose(math.exp(less), 0.6 * 0.4, rtol=1e-8)


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
        greedily(library, trap(), [0], number)


TRANSLATORS = ("EncoderDecoder", "Transformer")


def made(library, name, vocab=300, target=11):
    """A small model of one of the back ends."""
    of_target = target, 7, 6, 2, 5, 1
    sizes = {
        "EncoderDecoder": (target, 3, 4),
        "Transformer": of_target,
        "DecoderOnly": of_target[1:],
    }
    return library.make(name, vocab, *sizes[name])


def words(library, *shape):
    source = library.array(np.ones(shape, int))
    return source, source > 0


@pytest.mark.parametrize("name", [*TRANSLATORS, "DecoderOnly"])
def test_models_in_bfloat16_write(library, name):
    """NumPy has no such numbers: what comes back is float32."""
    layer = made(Library(library.name), name)
    if library.name == "torch":
        layer = layer.bfloat16()
    else:
        layer = library.jax.tree.map(
            lambda a: a.astype("bfloat16") if hasattr(a, "astype") else a, layer
        )
    if name == "DecoderOnly":
        assert sampling.sample(layer, [1], 3).shape == (4,)
        return
    source, mask = words(library, 2, 3)
    written, weights = greedy(layer, source, mask, **HOW)
    assert written.shape[0] == 2
    assert weights.dtype == np.float32
    found = beam(layer, source[0], mask[0], **HOW, width=2)
    assert all(np.isfinite(probability) for _, probability in found)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", [*TRANSLATORS, "DecoderOnly"])
def test_writing_keeps_no_graph(name, training, grad):
    """Nothing is saved for a gradient, no step gives what has one; modes stay as they were."""
    library = Library("torch")
    torch = library.backend.xp
    model = made(library, name).train(training)
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
            source, mask = words(library.backend, 2, 3)
            greedy(model, source, mask, **HOW)
            beam(model, source[0], mask[0], **HOW, width=2)
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
    model = made(Library(library.name), name, 9, 70_000)
    numbers = np.array([[1, 2, 8], [3, 1, 1]])
    source, wide = library.array(numbers.astype(dtype)), library.array(numbers)
    how = HOW | {"start": 69_999}
    written, _ = greedy(model, source, source > 0, **how)
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
    model = made(Library(library.name), name)
    source, mask = words(library, 2, 3)
    with pytest.raises(ValueError, match=message):
        greedy(model, source, mask, **(HOW | how))
    with pytest.raises(ValueError, match=message):
        beam(model, source[0], mask[0], **(HOW | how), width=2)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_sources_of_other_shapes(library, name):
    """Five words are no batch of five; a batch of none has nothing to write."""
    model = made(Library(library.name), name)
    for shape in ((5,), (2, 2, 3), (0, 3), ()):
        message = f"source: got shape {shape}, expected (b, n), one row"
        with pytest.raises(ValueError, match="^" + re.escape(message)):
            greedy(model, *words(library, *shape), **HOW)
    for shape in ((2, 3), ()):
        message = f"source: got shape {shape}, expected (n,), one sent"
        with pytest.raises(ValueError, match="^" + re.escape(message)):
            beam(model, *words(library, *shape), **HOW, width=2)
    source, mask = words(library, 2, 3)
    message = r"^(mask|source): got a \w+, expected a NumPy, PyTorch or"
    for wrong in ((source, None), ([[1, 2]], mask)):
        with pytest.raises(TypeError, match=message):
            greedy(model, *wrong, **HOW)
        with pytest.raises(TypeError, match=message):
            beam(model, *wrong, **HOW, width=2)


@pytest.mark.parametrize("stranger", ["DecoderOnly", "Linear", None, "a class"])
def test_models_that_do_not_translate(library, stranger):
    of = Library(library.name)
    strangers = {"DecoderOnly": made(of, "DecoderOnly"), "a class": of.module.Transformer}
    model = strangers.get(stranger, stranger)
    source, mask = words(library, 2, 3)
    message = r"^model: got a \w+, expected an EncoderDecoder or a Transformer$"
    with pytest.raises(TypeError, match=message):
        greedy(model, source, mask, **HOW)
    with pytest.raises(TypeError, match=message):
        beam(model, source[0], mask[0], **HOW, width=2)
