"""Layers are exported with sizes that stay open: one program for every batch and every length."""

import numpy as np
import pytest
from layer_harness import Library

SIZES = ((2, 3), (5, 4), (3, 5))  # batch and length: of the example, and of what comes later
SEQUENCES = {  # constructor, and which arrays come in: x a stream, t token numbers, m a mask
    "SelfAttention": ((8,), "x"),
    "MultiHeadAttention": ((8, 2), "x"),
    "MLP": ((8, 12), "x"),
    "EncoderBlock": ((8, 2, 12), "x"),
    "DecoderBlock": ((8, 2, 12), "xx"),
    "EncoderOnly": ((8, 3, 6, 8, 2, 12, 2), "x"),
    "DecoderOnly": ((7, 6, 8, 2, 12, 2), "t"),
    "AttentionOnly": ((7, 6, 8, 2, 2), "t"),
    "Transformer": ((7, 7, 6, 8, 2, 12, 2), "tmt"),
    "AttentionPooling": ((7, 6), "t"),
}
KERNELS = {
    "KernelRegression": (0.7,),
    "MultiHeadKernelRegression": ([0.5, 1.0],),
    "MetricKernelRegression": ([[1.0, 0.5], [0.0, 2.0]],),
}


def arrays(kinds, batch, n, seed=0):
    rng = np.random.default_rng(seed)
    make = {
        "x": lambda: rng.normal(size=(batch, n, 8)),
        "t": lambda: rng.integers(0, 7, size=(batch, n)),
        "m": lambda: np.ones((batch, n), bool),
    }
    return [make[kind]() for kind in kinds]


def near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def torch_program(layer, given, open_sizes):
    torch = pytest.importorskip("torch")
    tensors = tuple(torch.from_numpy(a) for a in given)
    return torch.export.export(layer, tensors, dynamic_shapes=open_sizes, strict=False).module()


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.filterwarnings("ignore")  # what torch.export says of its own code
def test_torch_export_keeps_batch_and_length_open(name):
    library = Library("torch")
    torch = library.backend.xp
    how, kinds = SEQUENCES[name]
    layer = library.make(name, *how)
    batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("n", min=1, max=6)
    program = torch_program(layer, arrays(kinds, *SIZES[0]), [{0: batch, 1: length}] * len(kinds))
    for seed, (b, n) in enumerate(SIZES):
        given = [torch.from_numpy(a) for a in arrays(kinds, b, n, seed)]
        near(program(*given).detach().numpy(), layer(*given).detach().numpy())


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.filterwarnings("ignore")
def test_torch_export_of_kernel_regression(name):
    """For every number of queries and of points."""
    library = Library("torch")
    torch = library.backend.xp
    layer = library.make(name, *KERNELS[name])
    rng = np.random.default_rng(0)
    m, n = torch.export.Dim("m", min=1, max=4096), torch.export.Dim("n", min=1, max=4096)
    shapes = [{0: m}, {0: n}, {0: n}]
    given = [rng.normal(size=s) for s in ((3, 2), (5, 2), (5, 1))]
    program = torch_program(layer, given, shapes)
    for queries, points in ((7, 11), (900, 1300)):
        more = [rng.normal(size=s) for s in ((queries, 2), (points, 2), (points, 1))]
        tensors = [torch.from_numpy(a) for a in more]
        near(program(*tensors).detach().numpy(), layer(*tensors).detach().numpy())


@pytest.mark.filterwarnings("ignore")
def test_torch_export_of_a_cell():
    library = Library("torch")
    torch = library.backend.xp
    layer = library.make("GRUCell", 8, 5)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch_program(layer, [np.ones((2, 8)), np.ones((2, 5))], [{0: batch}, {0: batch}])
    rng = np.random.default_rng(0)
    given = [torch.from_numpy(rng.normal(size=s)) for s in ((11, 8), (11, 5))]
    near(program(*given).detach().numpy(), layer(*given).detach().numpy())


@pytest.mark.parametrize("name", SEQUENCES)
def test_jax_export_keeps_batch_and_length_open(name):
    import jax
    from jax import export

    library = Library("jax")
    how, kinds = SEQUENCES[name]
    layer = library.make(name, *how)
    scope = export.symbolic_shape("b, n", constraints=["n <= 6", "n >= 1", "b >= 1"])
    shapes = [
        jax.ShapeDtypeStruct((*scope, *a.shape[2:]), jax.numpy.asarray(a).dtype)
        for a in arrays(kinds, *SIZES[0])
    ]
    program = export.export(jax.jit(lambda *given: layer(*given)))(*shapes)
    for seed, (b, n) in enumerate(SIZES):
        given = [jax.numpy.asarray(a) for a in arrays(kinds, b, n, seed)]
        near(np.asarray(program.call(*given)), np.asarray(layer(*given)))


@pytest.mark.parametrize("name", KERNELS)
def test_jax_export_of_kernel_regression(name):
    import jax
    from jax import export

    library = Library("jax")
    layer = library.make(name, *KERNELS[name])
    m, n = export.symbolic_shape("m, n")
    shapes = [jax.ShapeDtypeStruct(s, np.float64) for s in ((m, 2), (n, 2), (n, 1))]
    program = export.export(jax.jit(lambda *given: layer(*given)))(*shapes)
    rng = np.random.default_rng(0)
    for queries, points in ((7, 11), (900, 1300)):
        more = [rng.normal(size=s) for s in ((queries, 2), (points, 2), (points, 1))]
        given = [jax.numpy.asarray(a) for a in more]
        near(np.asarray(program.call(*given)), np.asarray(layer(*given)))
