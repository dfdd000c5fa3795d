"""Cells as in a reader's browser, where there is neither PyTorch nor JAX: tried here without them."""

import inspect
import sys

import pytest

from attnbook_course.browser import Cell, Page, changed, find_needs, import_by_import, names


def needs(*codes, lacks=lambda code: ""):
    cells = [Cell("import math"), *map(Cell, codes)]
    find_needs(cells, lacks)
    return cells


def test_names():
    code = "a = b\ndef f(x):\n    return x + c\nfor d in e: pass"
    bound, read = names(code)
    assert bound == {"a", "f", "d"} and {"b", "c", "e"} <= read and "x" not in read


def test_what_changes_an_object():
    code = "a[0] = 1\nb.c = 2\naxes[0].plot(x)\ny = rng.normal()\nz = f(w)"
    assert changed(code) == {"a", "b", "axes", "rng"}


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
    cells = needs(*codes, "t", lacks=lambda code: "PyTorch" if "import torch" in code else "")
    lacking = [bool(cell.lacks) for cell in cells]
    assert lacking == [False, True, True, False, True, True, False, False]


def page(*codes):
    return Page([{"code": code, "lacks": ""} for code in ("import math, no_such", *codes)])


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
    one = Page([{"code": f"{code}seen = []\nseen.append(json)", "lacks": ""}])
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
        ("def f(:", "line 1: def f(:\nSyntaxError: invalid syntax"),
        ("nowhere", "No cell above that runs in this browser sets nowhere."),
        ("import no_such", "What is not in this browser is in the notebook."),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_errors(code, said):
    before = sys.stdout
    (shown,) = page(code).run(1, code)
    assert shown["missing"] == ("no_such" if "import" in code else "")
    assert shown["kind"] == "error" and said in shown["content"] and sys.stdout is before


def test_a_function_knows_its_source():
    one = page("def f(x):\n    return x  # here")
    one.run(1, one.cells[1].code)
    assert inspect.getsource(one.namespace["f"]) == "def f(x):\n    return x  # here\n"[:-1]


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
