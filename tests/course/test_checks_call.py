"""How a check reads answers of any form, and what it says of those it cannot read."""

from __future__ import annotations

import numpy as np
import pytest

from attnbook.course.checks import ch01, ch05
from attnbook.course.checks.call import call, call_pair, to_numpy
from attnbook.course.checks.verdict import MOST_WORDS, Wrong, check, expect, show


def torch_one():
    import torch

    return torch.tensor([2.378], requires_grad=True)


def jax_one():
    import jax.numpy as jnp

    return jnp.exp2(1.25)


@pytest.mark.parametrize(
    "answer",
    [lambda: np.array([2.378]), lambda: [[2.378]], lambda: np.float32(2.378), torch_one, jax_one],
)
def test_one_number_may_have_any_shape(answer):
    assert ch01.data_for_half_the_error(answer).status == "right"


def test_a_list_of_tensors_with_gradients():
    def rows(u):
        import torch

        top = torch.tensor(0.75, requires_grad=True)
        return [list(top * torch.relu(1 - row**2)) for row in u] if u.ndim > 1 else list(
            top * torch.relu(1 - u**2)
        )  # fmt: skip

    assert ch01.epanechnikov(rows).status == "right"


def test_arrays_of_pytorch_s_own_default_type_may_be_mixed_in():
    def answer(q, k, v):
        import torch

        state, out = torch.zeros(k.shape[1], v.shape[1]), []
        for a, b, c in zip(q, k, v, strict=True):
            state = state + torch.outer(b, c)
            out.append(torch.ones(1, len(a)) * a @ state)
        return torch.cat(out)

    assert ch05.running_attention(answer).status == "right"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "does it end with return"),
        ("2.378", "a str, expected numbers"),
        (np.maximum, "parentheses of a call"),
        ([[1.0, 2.0], [3.0]], "parts differ in length"),
        ([1.0, None], "None in the place of a number"),
        (np.asarray([1 + 1j]), "complex"),
        ({"a": 1}, "a dict, expected numbers"),
    ],
)
def test_what_is_no_array_of_numbers(answer, words):
    with pytest.raises(Wrong, match=words):
        to_numpy(answer)


def test_a_complex_number_without_imaginary_part_is_a_number():
    assert to_numpy(np.asarray([2 + 0j])).tolist() == [2]


def test_an_error_names_the_arguments():
    def broken(u):
        return u[7]

    message = ch01.epanechnikov(broken).message
    assert message.endswith("out of bounds for axis 0 with size 1 (u = [0.6])")
    with pytest.raises(ZeroDivisionError) as found:
        call_pair(lambda keys, h: 1 / 0, np.ones((24, 3)), 0.7)
    assert found.value.__notes__ == ["keys of shape (24, 3), h = 0.7"]


def test_a_library_that_cannot_do_something_is_no_stub():
    def unable(u):
        raise NotImplementedError("not for integers\nand a second line")

    verdict = ch01.epanechnikov(unable)
    assert verdict.status == "wrong"
    assert "NotImplementedError: not for integers (u = [0.6])" in verdict.message


@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_the_error_shown_is_the_library_s_own(kind):
    def mistyped(d):
        if kind == "torch":
            import torch

            return torch.softmax(d, dim=0).summe()
        return d.summe()

    with pytest.raises(AttributeError) as found:
        call(mistyped, np.ones(3))
    assert ("Tensor" if kind == "torch" else "ndarray") in str(found.value)


def told(got, expected, **options):
    @check
    def name(function):
        expect(np.asarray(got, dtype=float), expected, "here,", **options)
        return "yes"

    return name(None).message.removeprefix("name: ")


@pytest.mark.parametrize(
    ("got", "expected", "message"),
    [
        ([[1, 2], [3, 4]], [[1, 2], [3, 5]], "here, in entry [1, 1], counted from 0, you give 4, expected 5."),
        ([1, np.nan], [1, 2], "here, in entry [1], counted from 0, you give nan, expected 2."),
        (-0.41, 0.18, "here, you give −0.41, expected 0.18."),
        ([1.0], [2.0], "here, you give 1, expected 2."),
        (10.00001, 10.0003, "here, you give 10, expected 10.0003."),
        ([1, 2], 3, "here, you give shape (2,), expected one number."),
        (3, [1, 2], "here, you give one number, expected shape (2,)."),
        (np.ones((2, 3)), np.ones((3, 2)), "here, you give shape (2, 3), expected (3, 2). Is it transposed?"),
    ],
)  # fmt: skip
def test_the_first_entry_that_differs_is_named(got, expected, message):
    assert told(got, expected) == message


def test_a_multiple_of_the_right_answer_hears_that_it_is_one():
    words = ("The shape is right.", 0.5)
    given = {"but_for_a_factor": words, "secret": True}
    assert told([2.0, 4.0], [1.0, 2.0], **given).endswith("you give 2. The shape is right.")
    for got, expected in (([2.0, 5.0], [1.0, 2.0]), ([-1.0, -2.0], [1.0, 2.0]), (3.0, 1.0)):
        assert "The shape is right." not in told(got, expected, **given)
    assert "The shape is right." not in told([2.0, np.nan], [1.0, 2.0], **given)


def test_no_message_is_longer_than_a_page():
    @check
    def name(function):
        raise Wrong("x" * 10**7)

    message = name(None).message
    assert len(message) == MOST_WORDS
    assert message.endswith(" …")


def test_a_secret_is_kept():
    assert told(1.0, 2.0, secret=True) == "here, you give 1, expected a larger number."
    assert told(3.0, 2.0, secret=True) == "here, you give 3, expected a smaller number."


def test_short_numbers():
    assert [show(x) for x in (-0.0, 74496.0, -2.0, 1e9, 0.123456, np.inf)] == [
        "0", "74496", "−2", "1e+09", "0.1235", "inf"
    ]  # fmt: skip
