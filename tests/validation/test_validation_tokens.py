"""What the models of sequences refuse: token numbers, masks and labels, on every library."""

import backends
import numpy as np
import pytest

from attnbook._validation import tokens


@pytest.fixture(autouse=True)
def values_are_known(request):
    """Under jit they are not."""
    if "backend" in request.fixturenames and request.getfixturevalue("backend").name == "jax-jit":
        pytest.skip("under jit the values are not known")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("shape", [(7,), (2, 7), (2, 3, 7), (0,), (2, 0)])
def test_numbers(backend, rng, shape, dtype):
    given = rng.integers(0, 11, size=shape).astype(dtype)
    tokens.check_tokens(11, source=backend.array(given))
    tokens.check_tokens(11, 7, source=backend.array(given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[0, 11]], "words: got 0 to 11, expected 0 to 10"),
        ([[3, -1, 5]], "words: got -1 to 5, expected 0 to 10"),
        ([[-2, 40]], "words: got -2 to 40, expected 0 to 10"),
        ([[0.0, 1.0]], r"words: got dtype .*float64, shape \(1, 2\), expected integers of shape"),
        ([[True]], r"words: got dtype .*bool, shape \(1, 1\), expected integers of shape"),
        (3, r"words: got dtype .*int64, shape \(\), expected integers of shape \(..., n\)"),
    ],
)
def test_bad_numbers(backend, given, message):
    with pytest.raises(ValueError, match=message):
        tokens.check_tokens(11, words=backend.array(np.array(given)))
    with pytest.raises(TypeError, match="words: got a list, expected a NumPy, PyTorch or JAX"):
        tokens.check_tokens(11, words=[1, 2])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
@pytest.mark.parametrize("vocab", [128, 256, 300, 65_536, 70_000])
def test_small_integers_do_not_wrap(backend, dtype, vocab):
    """A bound that the dtype does not hold bounds nothing; a negative number is still refused."""
    tokens.check_tokens(vocab, words=backend.array(np.array([0, 37, 127], dtype)))
    if dtype == "uint8":
        if vocab == 128:
            with pytest.raises(ValueError, match="words: got 3 to 249, expected 0 to 127"):
                tokens.check_tokens(vocab, words=backend.array(np.array([3, 249], dtype)))
        return
    with pytest.raises(ValueError, match=f"words: got -1 to 3, expected 0 to {vocab - 1}"):
        tokens.check_tokens(vocab, words=backend.array(np.array([3, -1], dtype)))


def test_too_many(backend):
    given = backend.array(np.zeros((2, 8), dtype=np.int64))
    tokens.check_tokens(11, 8, tokens=given)
    with pytest.raises(ValueError, match="tokens: got 8 of them, expected at most 7"):
        tokens.check_tokens(11, 7, tokens=given)


@pytest.mark.parametrize("n", [0, 7])
def test_at_most(backend, n):
    """The axis before the last is counted; None is no limit."""
    given = backend.array(np.zeros((2, n, 11)))
    tokens.check_length(7, x=given)
    tokens.check_length(None, x=given, y=given)
    tokens.check_length(7)
    long = backend.array(np.zeros((2, 8, 3)))
    tokens.check_length(None, x=long)
    tokens.check_length(8, x=long, y=given)
    for names in ({"x": long}, {"y": given, "x": long}, {"x": long, "y": given}):
        with pytest.raises(ValueError, match=r"x: got 8 tokens, expected at most 7$"):
            tokens.check_length(7, **names)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_next_token(backend, dtype):
    """One a row, of the vocabulary, while every row has room."""
    token = backend.array(np.array([0, 10], dtype))
    for length in ([0, 0], [6, 3]):
        tokens.check_next_token(11, 7, token, backend.array(np.array(length, np.int32)))


@pytest.mark.parametrize(
    ("token", "length", "message"),
    [
        ([0, 11], [0, 0], "token: got 0 to 11, expected 0 to 10"),
        ([-1, 0], [0, 0], "token: got -1 to 0, expected 0 to 10"),
        ([0.0, 1.0], [0, 0], r"token: got dtype .*float64, shape \(2,\), expected integers"),
        (1, [0, 0], r"token: got dtype .*int64, shape \(\), expected integers"),
        ([1], [0, 0], r"token: got shape \(1,\), expected \(2,\), one per row of the cache"),
        ([[1, 1]], [0, 0], r"token: got shape \(1, 2\), expected \(2,\), one per row of the cache"),
        ([1, 1], [7, 7], "cache: got 7 tokens, expected fewer: it is full"),
        ([1, 1], [0, 7], "cache: got 7 tokens, expected fewer: it is full"),
    ],
)
def test_bad_next_tokens(backend, token, length, message):
    arrays = (backend.array(np.array(a)) for a in (token, length))
    with pytest.raises(ValueError, match=message):
        tokens.check_next_token(11, 7, *arrays)
    with pytest.raises(TypeError, match="token: got a list, expected a NumPy, PyTorch or JAX"):
        tokens.check_next_token(11, 7, [1, 1], backend.array(np.array([0, 0])))


SOURCE = np.array([[0, 12, 3], [5, 0, 0]])
MASK = np.array([[True, True, True], [True, False, False]])
TARGET = np.array([[16, 0, 1, 2, 3], [1, 1, 1, 1, 1]])
SENTENCES = {"source": SOURCE, "mask": MASK, "target": TARGET}
BAD = [
    ("source", SOURCE + 1, "source: got 1 to 13, expected 0 to 12"),
    ("source", SOURCE * 1.0, r"source: got dtype .*float64, shape \(2, 3\)"),
    ("source", SOURCE[0], r"mask: got dtype .*bool, shape \(2, 3\), expected bool of shape \(3,\)"),
    ("target", TARGET + 1, "target: got 1 to 17, expected 0 to 16"),
    ("target", TARGET - 1, "target: got -1 to 15, expected 0 to 16"),
    ("target", TARGET[0], r"target: got leading axes \(\), expected \(2,\) as in source"),
    ("target", TARGET[:1], r"target: got leading axes \(1,\), expected \(2,\) as in"),
    ("mask", MASK * 1, r"mask: got dtype .*int64, shape \(2, 3\), expected bool of"),
    ("mask", MASK[:, None], r"mask: got .* shape \(2, 1, 3\), expected bool of shape \(2, 3\)"),
    ("mask", MASK[:, 1:], r"mask: got .* shape \(2, 2\), expected bool of shape \(2, 3\)"),
    ("mask", MASK & [[True], [False]], "mask: got a sentence without a word, expected at"),
]


def check(backend, given):
    arrays = [backend.array(a) for a in given.values()]
    tokens.check_sentences(*arrays, 13, 17)


@pytest.mark.parametrize(("name", "given", "message"), BAD)
def test_bad_sentences(backend, name, given, message):
    check(backend, SENTENCES)
    check(backend, {n: a[0] for n, a in SENTENCES.items()})
    with pytest.raises(ValueError, match=message):
        check(backend, SENTENCES | {name: given})


@pytest.mark.parametrize("target", [TARGET[:, :0], TARGET[:1, :0]])
def test_nothing_is_written(backend, target):
    """A text has START at least."""
    with pytest.raises(ValueError, match="target: got no token, expected at least one, START"):
        check(backend, SENTENCES | {"target": target})
    check(backend, SENTENCES | {"target": TARGET[:, :1]})


def test_no_words_at_all(backend):
    empty = {n: a[:, :0] if n != "target" else a for n, a in SENTENCES.items()}
    with pytest.raises(ValueError, match="mask: got a sentence without a word, expected at least"):
        check(backend, empty)


LOGITS, LABELS = np.zeros((2, 3, 7)), np.array([[0, 6, 1], [2, 3, 4]])
NO_LABELS = [  # logits, labels, a mask, the error
    (LOGITS[0, 0], LABELS[0, 0], None, r"logits: got shape \(7,\), expected \(..., n, vocab\)"),
    (LOGITS[..., :0], LABELS, None, r"logits: got shape \(2, 3, 0\), expected \(..., n, vocab\)"),
    (LOGITS, LABELS + 1, None, "labels: got 1 to 7, expected 0 to 6"),
    (LOGITS, LABELS - 1, LABELS > -1, "labels: got -1 to 5, expected 0 to 6"),
    (LOGITS, LABELS + 1, LABELS > 1, "labels: got 0 to 7, expected 0 to 6"),
    (LOGITS, LABELS * 1.0, None, r"labels: got .*float64, shape \(2, 3\), expected integers"),
    (
        LOGITS,
        LABELS[0],
        None,
        r"labels: got shape \(3,\), expected \(2, 3\), one per row of logits",
    ),
    (LOGITS[:1], LABELS, None, r"labels: got shape \(2, 3\), expected \(1, 3\), one per row"),
    (LOGITS, LABELS, LABELS, r"mask: got dtype .*int64, shape \(2, 3\), expected bool of shape"),
    (LOGITS, LABELS, LABELS[0] > 0, r"mask: .*bool, shape \(3,\), expected bool of shape \(2, 3\)"),
]


@pytest.mark.parametrize(("logits", "labels", "mask", "message"), NO_LABELS)
def test_bad_labels(backend, logits, labels, mask, message):
    """What is masked may be anything, such as PyTorch's −100."""
    for planted in (-100, -1, 7, 10_000):
        masked = backend.array(np.where(LABELS > 0, LABELS, planted))
        tokens.check_labels(backend.array(LOGITS), masked, backend.array(LABELS > 0))
    mask = None if mask is None else backend.array(mask)
    with pytest.raises(ValueError, match=message):
        tokens.check_labels(backend.array(logits), backend.array(np.array(labels)), mask)


def test_shapes_are_looked_at_under_jit():
    """Values cannot be: a number outside the vocabulary passes."""
    jax = backends.load_or_skip("jax").jax

    def checked(source):
        tokens.check_tokens(11, 3, source=source)
        return source

    assert int(jax.jit(checked)(jax.numpy.asarray([40]))[0]) == 40
    with pytest.raises(ValueError, match=r"source: got dtype .*, expected integers of shape"):
        jax.jit(checked)(jax.numpy.asarray([0.0, 1.0]))
    with pytest.raises(ValueError, match="source: got 5 of them, expected at most 3"):
        jax.jit(checked)(jax.numpy.asarray([1, 2, 3, 4, 5]))

    def translated(source, mask, target):
        tokens.check_sentences(source, mask, target, 11, 11)
        return source

    words, mask = jax.numpy.zeros((2, 3), dtype=int), jax.numpy.zeros((2, 3), dtype=bool)
    np.testing.assert_array_equal(jax.jit(translated)(words, mask, words), words)
    with pytest.raises(ValueError, match="mask: got a sentence without a word"):
        jax.jit(translated)(words[:, :0], mask[:, :0], words)
    with pytest.raises(ValueError, match="target: got no token"):
        jax.jit(translated)(words, mask, words[:, :0])
