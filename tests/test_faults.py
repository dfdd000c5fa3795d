"""A planted bug must fail a test: the suite is tested here."""

from collections import Counter

import pytest
from faults import FAULTS, TESTS, Fault
from faults.running import Nurseries, copied

pytestmark = pytest.mark.slow


@pytest.fixture
def copy(tmp_path):
    return copied(tmp_path)


@pytest.fixture(scope="module")
def nurseries(tmp_path_factory):
    made = Nurseries(tmp_path_factory.mktemp("compiled"))
    yield made
    made.close()


def skip_without(backends: str, tests: tuple[str, ...]) -> None:
    needed = {"jax-jit": "jax", "numpy": "numpy", "torch": "torch", "jax": "jax"}
    for name in backends.split(","):
        pytest.importorskip(needed[name])
    if any("test_fused.py" in test for test in tests):
        pytest.importorskip("torch")


@pytest.mark.parametrize("backends", sorted({f.backends for f in FAULTS}))
def test_without_a_fault_the_tests_pass(nurseries, copy, backends):
    selected = (f.tests or TESTS[f.module] for f in FAULTS if f.backends == backends)
    tests = tuple(sorted({test for each in selected for test in each}))
    skip_without(backends, tests)
    code, printed = nurseries.run(copy, tests, backends)
    assert code == 0, printed


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.module}: {f.words}")
def test_fault_is_caught(nurseries, copy, fault: Fault):
    tests = fault.tests or TESTS[fault.module]
    skip_without(fault.backends, tests)
    path = copy / f"{fault.module}.py"
    source = path.read_text(encoding="utf-8")
    assert source.count(fault.original) == 1, "the original text must occur exactly once"
    path.write_text(source.replace(fault.original, fault.changed), encoding="utf-8")
    compile(path.read_text(encoding="utf-8"), path, "exec")
    code, printed = nurseries.run(copy, tests, fault.backends)
    assert code == 1, printed
    assert "1 failed" in printed


def test_every_module_has_at_least_seven():
    count = Counter(f.module for f in FAULTS)
    for module in TESTS:
        assert count[module] >= 7, module
    assert len({(f.module, f.words) for f in FAULTS}) == len(FAULTS)
