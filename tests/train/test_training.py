"""Training in both back ends: Adam by hand, dropout, and what cannot be trained."""

import math

import backends
import numpy as np
import pytest
import reference

from attnbook.train import training


@pytest.fixture(params=["torch", "jax"])
def library(request):
    """attnbook.torch or attnbook.jax."""
    yield from entered(request.param)


def entered(name):
    backend = backends.load_or_skip(name)
    module = pytest.importorskip(f"attnbook.{name}")
    if name == "torch":
        yield module
        return
    # optax's own formulas mix integers and floats, which the other tests' strict promotion refuses
    with backend.jax.numpy_dtype_promotion("standard"):
        yield module


def minibatch(*numbers):
    return [(np.array([number]),) for number in numbers]


def product(model, x):
    """h · x, whose slope in log h is h · x too."""
    return (model.bandwidth * x).sum()


def layer(library, h):
    """A layer of one parameter, log h, in float64."""
    made = library.KernelRegression(h)
    return made.double() if library.__name__.endswith("torch") else made


def test_equals_adam_by_hand(library):
    """The loss h · x in log h, with another rate for every step, one of them 0: loss and parameter."""
    rng = np.random.default_rng(2)
    inputs = rng.normal(size=23)
    rates = np.where(np.arange(23) == 5, 0.0, np.geomspace(0.3, 0.001, 23))
    model = layer(library, 0.7)
    start = model.log_bandwidth.item()
    model, history = library.train(model, product, minibatch(*inputs), learning_rate=rates)
    path = reference.adam(lambda p, x: math.exp(p) * x, start, inputs, rates)
    losses = [math.exp(p) * x for p, x in zip(path, inputs, strict=False)]
    np.testing.assert_allclose(history.losses, losses, rtol=1e-9)  # before that step's change
    np.testing.assert_allclose(model.log_bandwidth.item(), path[-1], rtol=1e-9)
    assert path[5] == path[6] != path[7]


def test_progress_goes_to_stderr(library, capsys):
    how = {"learning_rate": 0.1, "name": "Kernel"}
    library.train(layer(library, 0.7), product, minibatch(1.0, 2.0), **how)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Kernel" in printed.err
    assert "2/2" in printed.err
    assert "loss=0.7" in printed.err


def test_the_gate_through_the_layers(library):
    how = {"learning_rate": 0.0, "gate": (2, 0.5)}
    with pytest.raises(training.TrainingFailed, match=r"0\.7 after 2 steps, expected 0\.5 or less"):
        library.train(layer(library, 0.7), product, minibatch(1.0, 1.0, 1.0), **how)


def pair(library):
    """Two parameters, a = 1 and b = 2, in the library's own kind of model."""
    start = {"a": 1.0, "b": 2.0}
    if library.__name__.endswith("jax"):
        return {name: backends.load("jax").xp.asarray(number) for name, number in start.items()}
    torch = backends.load("torch").xp
    tensors = {n: torch.tensor(number, dtype=torch.float64) for n, number in start.items()}
    return torch.nn.ParameterDict({n: torch.nn.Parameter(t) for n, t in tensors.items()})


def weighed(model, x):
    """Its gradient is (3 x, 4 x), of length 5 |x|."""
    return ((3 * model["a"] + 4 * model["b"]) * x).sum()


@pytest.mark.parametrize("clip", [None, 2.0, 0.5, 100])
def test_clipped_gradients_by_hand(library, clip):
    """Adam's own steps from gradients no longer than the limit, both parameters together."""
    inputs = np.array([0.1, 7.0, -0.3, 0.5, -11.0, 0.0, 0.2, 1.3])
    length = 5 * np.abs(inputs)
    limit = math.inf if clip is None else clip
    shrunk = inputs * np.minimum(1, limit / np.maximum(length, 1e-9))
    if clip in (0.5, 2.0):
        assert 0 < np.sum(shrunk != inputs) < 7
    how = {"learning_rate": 0.1, "clip": clip}
    model, _ = library.train(pair(library), weighed, minibatch(*inputs), **how)
    for name, start, slope in (("a", 1.0, 3), ("b", 2.0, 4)):
        path = reference.adam(lambda _, x, slope=slope: slope * x, start, shrunk, [0.1] * 8)
        np.testing.assert_allclose(model[name].item(), path[-1], rtol=1e-5)
        loose = reference.adam(lambda _, x, slope=slope: slope * x, start, inputs, [0.1] * 8)
        assert (abs(loose[-1] - path[-1]) > 1e-3) == (clip in (0.5, 2.0))


@pytest.mark.parametrize("clip", [0, -1.0, math.nan, math.inf, True, "1", "x"])
def test_bad_clips(library, clip):
    with pytest.raises(ValueError, match=f"clip: got {clip!r}, expected a number above 0, or None"):
        library.train(layer(library, 0.7), product, minibatch(1.0), learning_rate=0.1, clip=clip)


def mean_square(model, x, key=None):
    return (model(x, key=key) ** 2).mean()


def four_losses(library, model, x, rate=0.01, **how):
    return library.train(model, mean_square, [(x,)] * 4, learning_rate=rate, **how)[1].losses


def test_dropout_while_training():
    """The loss gets a new key every step; without one nothing is left out."""
    for library in entered("jax"):
        import jax

        one, two, three = jax.random.split(jax.random.key(1), 3)
        x = np.random.default_rng(0).normal(size=(5, 8))
        block = library.EncoderBlock(8, 2, 16, dropout=0.5, key=one)
        plain = library.EncoderBlock(8, 2, 16, key=one)
        expected = four_losses(library, plain, x)
        np.testing.assert_array_equal(four_losses(library, block, x), expected)
        dropped = four_losses(library, block, x, key=two)
        np.testing.assert_array_equal(dropped, four_losses(library, block, x, key=two))
        assert np.all(dropped != four_losses(library, block, x, key=three))
        assert np.all(dropped != expected)
        still = four_losses(library, block, x, rate=0.0, key=two)  # the draws alone differ
        assert len(set(still.tolist())) == 4
        np.testing.assert_allclose(four_losses(library, plain, x, key=two), expected, rtol=1e-12)


@pytest.mark.parametrize("loss", [None, 3.0, "loss"])
def test_a_loss_is_a_function(library, loss):
    with pytest.raises(ValueError, match=f"^loss: got {loss!r}, expected a function such as "):
        library.train(layer(library, 0.7), loss, minibatch(1.0), learning_rate=0.1)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (lambda a: a, ValueError, r"dtype .*float64, shape \(1,\), expected a floating"),
        (lambda a: a.sum() > 0, ValueError, r"dtype .*bool, shape \(\), expected a floating"),
        (lambda a: None, TypeError, r"a NoneType, expected an array of shape \(\)"),
        (lambda a: 0.5, TypeError, r"a float, expected an array of shape \(\)"),
    ],
)
def test_a_loss_gives_one_number(library, change, kind, message):
    def loss(model, x):
        return change(model.bandwidth * x)

    with pytest.raises(kind, match=f"^loss: gave {message}"):
        library.train(layer(library, 0.7), loss, minibatch(1.0), learning_rate=0.1)


def test_a_model_has_something_to_learn(library):
    message = "^model: got no parameter that learns, expected at least one$"
    if library.__name__.endswith("jax"):
        with pytest.raises(ValueError, match=message):
            library.train({"n": 3}, product, minibatch(1.0), learning_rate=0.1)
        return
    nn = backends.load("torch").xp.nn
    for model in (nn.ReLU(), layer(library, 0.7).requires_grad_(False)):
        with pytest.raises(ValueError, match=message):
            library.train(model, product, minibatch(1.0), learning_rate=0.1)
    for model in (None, product):
        with pytest.raises(TypeError, match=r"^model: got a \w+, expected a torch\.nn\.Module$"):
            library.train(model, product, minibatch(1.0), learning_rate=0.1)
    model = layer(library, 0.7)
    with pytest.raises(ValueError, match=r"^loss: gave a constant, expected a number that"):
        library.train(model, lambda model, x: x.sum(), minibatch(1.0), learning_rate=0.1)


def test_a_data_loader():
    """Its batches are lists of tensors: they train as arrays do, without a warning, and stay."""
    for library in entered("torch"):
        torch = backends.load("torch").xp
        inputs = torch.tensor([[1.0], [2.0], [-1.0]], dtype=torch.float64)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs))
        found, plain = (
            library.train(layer(library, 0.7), product, batches, learning_rate=0.1)[1].losses
            for batches in (loader, minibatch(1.0, 2.0, -1.0))
        )
        np.testing.assert_array_equal(found, plain)
        assert inputs.ravel().tolist() == [1, 2, -1]


def test_a_loss_may_write_into_its_batch():
    """Into a copy: NumPy's arrays stay."""
    for library in entered("torch"):
        given = np.array([3.0])

        def loss(model, x):
            return (model.bandwidth * x.mul_(2)).sum()

        library.train(layer(library, 0.7), loss, [(given,)], learning_rate=0.1)
        assert given == [3]
