"""The rooms of the package: what imports what, from the roof to the floor, and old names."""

from __future__ import annotations

import ast
import graphlib
import importlib
from pathlib import Path

import pytest
from house import BEGIN, MODULES, PACKAGE, house, imported_by, room_of
from processes import run_python

from attnbook._moved import MOVED, new_names

ROOT = Path(__file__).resolve().parents[2]

FLOORS = (  # a room imports from floors below its own, and from itself
    "_validation",
    "_fast layers devices",
    "attention",
    "kernel linear_attention exact models",
    "datasets generate distributed",
    "train",
    "torch jax",
    "convert pretrained train_lm",
    "course",
)
LOOSE = {"_moved", "convert", "devices", "train_lm"}  # modules in no room


def test_no_import_points_upwards():
    """A formula knows no layer, a layer no published model, and the mathematics no teaching."""
    floor = {room: at for at, rooms in enumerate(FLOORS) for room in rooms.split()}
    assert {room_of(module) for module in MODULES} - {"", "_moved"} == set(floor)
    for module in MODULES:
        room = room_of(module)
        for other in {room_of(name) for name in imported_by(module)} - {room}:
            if room:
                below = floor[other] if other else len(FLOORS) - 2  # attnbook shows what is below
                assert below < floor[room], f"{module} imports from {other or 'attnbook'}"


def test_no_import_goes_round_in_a_circle():
    graphlib.TopologicalSorter({name: imported_by(name) for name in MODULES}).prepare()


def test_the_drawing_of_the_house_is_that_of_its_imports():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert page.count(BEGIN) == 1
    assert house() in page, "do: python tools/house.py --write"


def test_few_modules_stand_in_no_room():
    assert {file.stem for file in PACKAGE.glob("*.py")} - {"__init__"} == LOOSE


@pytest.mark.parametrize("folder", ["tools", "_ext", "benchmarks"])
def test_nothing_imports_what_runs_the_tests(folder):
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [n.name for n in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert "run_tests" not in names, file


def test_the_trainer_is_imported_once():
    """Run as a command it is __main__; its back end's half must not import it a second time."""
    for backend in ("torch", "jax"):
        pytest.importorskip(backend)
        assert "attnbook.train_lm" not in imported_by(f"attnbook.{backend}.train_lm")


def test_modules_are_still_found_under_their_old_names():
    """Everything public of where it is now is in it, and a warning says where that is."""
    old = {name: new_names(name) for name in (f"attnbook.{name}" for name in MOVED)}
    printed = run_python(
        "import importlib, warnings\n"
        f"for name, now in {old!r}.items():\n"
        "    with warnings.catch_warnings(record=True) as heard:\n"
        "        warnings.simplefilter('always')\n"
        "        old = importlib.import_module(name)\n"
        "    new = [vars(importlib.import_module(n)).items() for n in now]\n"
        "    same = [getattr(old, n) is v for items in new for n, v in items if n[0] != '_']\n"
        "    said = [w.message for w in heard if w.category is DeprecationWarning]\n"
        "    assert same and all(same) and len(said) == 1, name\n"
        "    assert str(said[0]).startswith(f'{name} is {now[0]}'), said\n"
        "    print(name)"
    )
    assert printed.split() == list(old)


def test_a_name_that_never_was_is_an_error():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("attnbook.nothing")
    with pytest.warns(match="online_softmax now"), pytest.raises(AttributeError, match="nothing"):
        importlib.import_module("attnbook.streams").nothing  # noqa: B018
    with pytest.raises(ImportError):
        from attnbook.streams import nothing  # noqa: F401


def test_the_grader_is_still_run_under_its_old_name():
    printed = run_python(
        "import runpy, sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "sys.argv = ['attnbook.checks']\n"
        "try: runpy.run_module('attnbook.checks', run_name='__main__', alter_sys=True)\n"
        "except SystemExit as left: print('left with', left.code)"
    )
    assert "usage: python -m attnbook.course.checks grade --help" in printed
    assert "left with 2" in printed
