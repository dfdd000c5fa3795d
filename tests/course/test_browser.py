"""Cells as in a reader's browser, where there is neither PyTorch nor JAX: tried here without them."""

import inspect
import re
import sys

import pytest

from attnbook_course.browser import Cell, Page, changed, find_needs, import_by_import, names


def imported(code):
    """PyTorch and JAX, as a statement that imports them lacks them."""
    return frozenset(re.findall(r"import (torch|jax)", code))


def needs(*codes, lacks=imported, first="import math"):
    cells = [Cell(first), *map(Cell, codes)]
    find_needs(cells, lacks)
    return cells


def test_names():
    code = "a = b\ndef f(x):\n    return x + c\nfor d in e: pass"
    bound, read = names(code)
    assert bound == {"a", "f", "d"} and read == {"b", "c", "e"}


@pytest.mark.parametrize(
    "code",
    [
        "a = 1\nprint(a)",
        "from b import a\na()",
        "for a in range(3):\n    a + 1",
        "for i, a in pairs:\n    c = a\n    d = [c]",
        "with opened as a:\n    print(a)",
        "[a for a in x], {a: a for a in x}, {a for a in x}, sum(a for a in x)",
        "def f(a, *b):\n    a = b\n    return f(a)",
        "if x:\n    a = 1\nelse:\n    a = 2\nprint(a)",
    ],
)
def test_what_a_cell_has_set_itself_it_does_not_need(code):
    assert not names(code)[1] & {"a", "b", "c", "f", "i"}


@pytest.mark.parametrize(
    "code",
    [
        "print(a)\na = 1",
        "a += 1",
        "for a in a:\n    pass",
        "for i in x:\n    a = i\nprint(a)",
        "if x:\n    a = 1\nprint(a)",
        "while x:\n    print(a)\n    a = 1",
        "try:\n    a = f()\nexcept ValueError:\n    pass\na",
        "def f():\n    return a\nf()\na = 1",
        "b = [a for b in x]",
    ],
)
def test_what_a_cell_may_read_before_it_sets_it_it_needs(code):
    assert "a" in names(code)[1]


def test_what_changes_an_object():
    code = "a[0] = 1\nb.c = 2\naxes[0].plot(x)\ny = rng.normal()\nz = f(w)"
    assert changed(code + "\nshow(v)\ndel u[0]") == {"a", "b", "axes", "rng", "u"}


def test_imports_name_by_name():
    code = "from a import (b,\n    c as d)\nimport e.f, g\nx = 1"
    found = "; ".join(import_by_import(code))
    assert found == "from a import b; from a import c as d; import e.f; import g; x = 1"


def test_a_cell_needs_who_bound_and_who_changed():
    cells = needs("x = [1]", "y = 2", "x[0] = y", "print(x)", "x = []", "print(x)")
    assert [cell.needs for cell in cells] == [[], [0], [0], [0, 1, 2], [0, 1, 2, 3], [0], [0, 5]]


def test_what_is_lacking_goes_on():
    """Through names, and through a change that did not take place; a new binding ends it."""
    codes = ["import torch\nt = torch.ones(3)", "u = t", "x = [1]", "x[0] = t", "print(x)", "t = 1"]
    lacking = [bool(cell.lacks) for cell in needs(*codes, "t")]
    assert lacking == [False, True, True, False, True, True, False, False]


def test_a_cell_lacks_what_it_takes_itself_before_what_others_took():
    """A function that a cell calls is not changed by it, nor is what has its parameter's name."""
    codes = ["def show(x): pass", "x = torch.ones(3)\nshow(x)", "y = jnp.ones(3)\nshow(y)"]
    codes += ["def f(y):\n    y[0] = torch.ones(3)", "show(2)", "torch.sum(y)", "y", "x + y"]
    cells = needs(*codes, first="import torch\nimport jax.numpy as jnp")
    said = ["", "torch", "jax", "torch", "", "torch", "jax", "jax torch"]
    assert [" ".join(sorted(cell.lacks)) for cell in cells[1:]] == said


def page(*codes):
    return Page([{"code": code, "lacks": []} for code in ("import math, no_such", *codes)])


def test_run():
    one = page("x = 2", "print(x)\nx + math.pi", "x;")
    code = "print(x)\nx + math.floor(1.5)"
    assert one.before(2, code) == [1]
    one.prepare(one.wanted([code]))
    assert one.run(1, "x = 3") == [] and one.before(2, code) == []
    assert [text["content"] for text in one.run(2, code)] == ["3\n", "4\n"]
    assert one.run(3, "x;") == []


def test_changed_code_needs_what_it_reads():
    one = page("x = 2", "y = 3", "print(x)")
    assert one.before(3, "print(y)") == [2]


def test_of_the_first_cell_what_is_wanted():
    """Each statement once; what stands alone as soon as it can; what cannot be had is left out."""
    code = "import json, math, no_such\nx = math.floor(2.5)\nmath.log(x)\n"
    one = Page([{"code": f"{code}seen = []\nseen.append(json)", "lacks": []}])
    assert one.wanted(["print(x)"]) == ["math", "x"]
    one.prepare(["math", "x"])
    assert one.namespace["x"] == 2 and "json" not in one.namespace and len(one.set_up) == 4
    one.prepare(["no_such", "json", "seen"])
    assert len(one.namespace["seen"]) == 1 and one.set_up == []
    one.prepare(["seen"])
    assert len(one.namespace["seen"]) == 1 and "no_such" not in one.namespace


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\n1 / 0", "line 2: 1 / 0\nZeroDivisionError: division by zero"),
        ("def f(:", "Python cannot read line 1: def f(:\nSyntaxError: invalid syntax"),
        ("nowhere", "No cell above that runs in this browser sets nowhere."),
        ("import no_such", "What is not in this browser is in the notebook."),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_errors(code, said):
    before = sys.stdout
    (shown,) = page("x").run(1, code)
    assert shown["missing"] == ("no_such" if "import" in code else "")
    assert shown["kind"] == "error" and said in shown["content"] and sys.stdout is before


def test_a_function_knows_its_source():
    one = page("def f(x):\n    return x  # here")
    one.run(1, one.cells[1].code)
    assert inspect.getsource(one.namespace["f"]) == "def f(x):\n    return x  # here\n"[:-1]


def test_what_an_exercise_had_before_is_not_checked():
    check = "\n\nchecks.f(f)"
    one = page("class checks:\n    f = staticmethod(lambda f: f(1))", f"def f(x):\n    pass{check}")
    one.run(1, one.cells[1].code)
    assert one.run(2, f"def f(x):\n    return x{check}")[0]["content"] == "1\n"
    (shown,) = one.run(2, f"def my_f(x):\n    return 0{check}")
    assert shown["content"].startswith("✗ f: there is no function f; your cell has my_f: is it")
    assert one.run(2, check)[0]["content"] == "✗ f: your cell has no def f.\n"
    assert one.namespace["f"](1) == 1  # for other cells


def test_what_is_shown():
    class Html:
        def _repr_html_(self):
            return "<b>x</b>"

    one = page("h")
    one.namespace["h"] = Html()
    assert one.run(1, "h") == [{"kind": "html", "content": "<b>x</b>"}]
    figure = "import matplotlib\nmatplotlib.use('agg')\nfrom matplotlib import pyplot\n"
    found = one.run(1, figure + "print(1)\npyplot.plot([1, 2])")
    assert [one["kind"] for one in found] == ["text", "svg"] and "<svg" in found[1]["content"]
