"""The rooms of the package: what imports what, from the roof to the floor."""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import pytest
from house import BEGIN, MODULES, PACKAGE, house, imported_by, room_of

ROOT = Path(__file__).resolve().parents[2]

FLOORS = (  # a room imports from floors below its own, and from itself
    "_types",
    "_validation",
    "layers devices",
    "attention",
    "kernel linear_attention exact models",
    "datasets generate distributed",
    "train",
    "torch jax",
    "convert pretrained train_lm",
    "attnbook_course",
)
LOOSE = {"_types", "_validation", "convert", "devices", "train_lm"}  # modules in no room


def test_no_import_points_upwards():
    """A formula knows no layer, a layer no published model, and the mathematics no teaching."""
    floor = {room: at for at, rooms in enumerate(FLOORS) for room in rooms.split()}
    assert {room_of(module) for module in MODULES} - {""} == set(floor)
    for module in MODULES:
        room = room_of(module)
        for other in {room_of(name) for name in imported_by(module)} - {room}:
            if room:
                below = floor[other] if other else len(FLOORS) - 2  # attnbook shows what is below
                assert below < floor[room], f"{module} imports from {other or 'attnbook'}"


def test_no_import_goes_round_in_a_circle():
    graphlib.TopologicalSorter({name: imported_by(name) for name in MODULES}).prepare()


def test_the_drawing_of_the_house_is_that_of_its_imports():
    page = (ROOT / "MAINTAINING.md").read_text(encoding="utf-8")
    assert page.count(BEGIN) == 1
    assert house() in page, "do: python tools/house.py --write"


def test_few_modules_stand_in_no_room():
    assert {file.stem for file in PACKAGE.glob("*.py")} - {"__init__"} == LOOSE


@pytest.mark.parametrize("folder", ["tools", "_ext", "experiments"])
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
