"""The small changes by which the suite is scored: what is changed, and what is left alone."""

import ast
import json

import pytest
from faults import mutation
from faults.mutants import mutants

FOUND = json.loads(mutation.FOUND.read_text(encoding="utf-8"))


def changed(source: str) -> list[str]:
    """What the changed statement is in every mutant."""
    return [m.now for m in mutants(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = b + c", ["a = b - c"]),
        ("a = b ** c @ d", ["a = b * c @ d"]),
        ("a += b", ["a -= b"]),
        ("a = b < c", ["a = b <= c", "a = b >= c"]),
        (
            "a = 0 is b is not c",
            [
                "a = 0 is not b is not c",
                "a = 0 is b is c",
                "a = 1 is b is not c",
                "a = -1 is b is not c",
            ],
        ),
        ("a = b and c", ["a = b or c"]),
        ("a = not b", ["a = b"]),
        ("a = -b", ["a = b"]),
        ("a = True", ["a = False"]),
        ("a = 3", ["a = 4", "a = 2"]),
        ("a = 0.5", ["a = 0.0", "a = 0.55"]),
        ("a = 0.0", ["a = 1.0"]),
        ("f(a)", ["pass"]),
        ("a = f(b, c=d, e=g)", ["a = f(b, e=g)", "a = f(b, c=d)"]),
        ("a = xp.max(b)", ["a = xp.min(b)"]),
        ("a = any(b)", ["a = all(b)"]),
        ("a = b if c else d", ["a = b if not c else d"]),
        ("if a:\n    b = c", ["if not a:"]),
        ("while a:\n    break", ["while not a:", "continue"]),
        ("def f(a: int = 2):\n    return a", ["def f(a=3):", "def f(a=1):", "return None"]),
    ],
)
def test_rules(source, expected):
    assert changed(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""1 + 1."""',
        "a: 'int | None'",
        "a: X[1 + 2]",
        "def f(a: X[1 + 2]) -> X[3]:\n    '''Not 1.'''",
        "raise ValueError(f'a: got {a + 1}')",
        "@f(1)\ndef g(): pass",
        "a = None",
        "a = 'max'",
        "max = a",
        "import a",
    ],
)
def test_left_alone(source):
    assert changed(source) == []


def test_one_change_at_a_time_and_the_source_in_the_end():
    source = "def f(a):\n    b = a + 1\n    return b\n"
    found = list(mutants(source))
    assert [m.source for m in found] == [
        "def f(a):\n    b = a - 1\n    return b",
        "def f(a):\n    b = a + 2\n    return b",
        "def f(a):\n    b = a + 0\n    return b",
        "def f(a):\n    b = a + 1\n    return None",
    ]
    assert [(m.function, m.line, m.was) for m in found] == [
        *[("f", 2, "b = a + 1")] * 3,
        ("f", 3, "return b"),
    ]
    for m in found:
        ast.parse(m.source)


@pytest.mark.parametrize("module", FOUND)
def test_what_survived_has_a_reason_and_is_little(module):
    """Of each module nine changes of ten are caught; make mutation finds it anew."""
    found = FOUND[module]
    assert found["score"] >= 0.9
    assert found["killed"] + len(found["survivors"]) == found["tried"] <= found["mutants"]
    for entry in found["survivors"]:
        assert entry["reason"], entry["now"]
