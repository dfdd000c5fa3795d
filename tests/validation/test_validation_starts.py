"""What a layer may start from: numbers, and what is refused."""

import numpy as np
import pytest
from layer_harness import Library

from attnbook._validation import numbers
from attnbook.attention import heads
from attnbook.models.config import BlockConfig


@pytest.mark.parametrize(
    ("function", "given", "shape"),
    [
        (numbers.bandwidth, 2, ()),
        (numbers.bandwidth, [1, 2.5], (2,)),
        (numbers.bandwidth, np.array([1.0, 2.0], np.float32), (2,)),
        (numbers.bandwidths, [1, 2.5], (2,)),
        (numbers.bandwidths, ((1, 2), (3, 4), (5, 6.5)), (3, 2)),
        (numbers.metric, [[0, -1]], (1, 2)),
        (numbers.metric, np.eye(3), (3, 3)),
    ],
)
def test_numbers_come_as_float64(function, given, shape):
    out = function(given)
    assert out.dtype == np.float64
    assert out.shape == shape
    np.testing.assert_array_equal(out, given)


UNEVEN = [[1.0], [1.0, 2.0]]
BAD = [  # a check, what it refuses and with which words
    (numbers.bandwidth, "a number above 0", [0.0, -1.0, np.nan, np.inf, "wide", "1", True, 1j]),
    (numbers.bandwidth, "a number above 0", [None, [], [[1.0]], [1.0, 0.0]]),
    (numbers.bandwidths, "numbers above 0, one per head", [1.0, [], [0.0, 1.0], [1.0, np.inf]]),
    (numbers.bandwidths, "numbers above 0, one per head", [[[[1.0]]], "ab", None, UNEVEN]),
    (numbers.metric, "a matrix", [1.0, [1.0], [[]], [[np.nan]], [[np.inf, 1.0]], "ab", UNEVEN]),
]


@pytest.mark.parametrize(("check", "expected", "starts"), BAD)
def test_bad_starts(check, expected, starts):
    for start in starts:
        with pytest.raises(ValueError, match=f"{check.__name__}: got .*, expected {expected}"):
            check(start)


def test_the_shape_of_heads():
    """Width, heads, heads of keys and values, the width of a head; as many of both by default."""
    assert heads.head_shape(12, 4, None) == (12, 4, 4, 3)
    assert heads.head_shape(12, 4, 2) == (12, 4, 2, 3)
    assert heads.head_shape(12, 4, 1) == (12, 4, 1, 3)
    out = heads.head_shape(np.int64(12), np.int64(4), np.int64(2))
    assert out == (12, 4, 2, 3)
    assert [type(number) for number in out] == [int] * 4


SIZES = {"embed_dim": 12, "num_heads": 3, "mlp_dim": 5}


def test_sizes_are_kept():
    """As Python integers, under the names of the arguments."""
    for norm, activation in (("pre", "gelu"), ("post", "relu"), ("pre", "swiglu")):
        for kind in (int, np.int64):
            given = {n: kind(v) for n, v in SIZES.items()} | {"norm": norm}
            config = BlockConfig(**given, activation=activation)
            found = {n: getattr(config, n) for n in (*SIZES, "norm", "activation")}
            assert found == SIZES | {"norm": norm, "activation": activation}
            assert {type(getattr(config, n)) for n in (*SIZES, "num_kv_heads")} == {int}


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_an_entry_is_one_of_the_config(library):
    """A block shows what its config says; in PyTorch it can be set, to what the config allows."""
    block = Library(library).make("EncoderBlock", **SIZES, norm="post")
    assert (block.norm, block.mlp_dim) == (block.config.norm, block.config.mlp_dim) == ("post", 5)
    if library == "torch":
        block.norm = "pre"
        assert block.config == BlockConfig(**SIZES)
        with pytest.raises(ValueError, match="norm: got 'before', expected 'pre' or 'post'"):
            block.norm = "before"


@pytest.mark.parametrize("num_kv_heads", [None, 1])
@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
def test_shapes_are_those_of_a_block(num_kv_heads, activation):
    how = SIZES | {"num_kv_heads": num_kv_heads, "activation": activation}
    block = Library("torch").make("EncoderBlock", **how)
    for name, parameter in block.named_parameters():
        if name.endswith(".weight"):
            assert block.config.shape(name.removesuffix(".weight")) == tuple(parameter.shape)
