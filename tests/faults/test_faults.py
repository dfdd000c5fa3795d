"""A planted bug must fail a test: the suite is tested here."""

from collections import Counter

import pytest

from faults import FAULTS, TESTS, Fault
from faults.running import PACKAGE, ForkServers, copied


@pytest.fixture
def copy(tmp_path):
    return copied(tmp_path)


@pytest.fixture(scope="module")
def fork_servers(tmp_path_factory):
    made = ForkServers(tmp_path_factory.mktemp("compiled"))
    yield made
    made.close()


def skip_without(backends: str, tests: tuple[str, ...]) -> None:
    needed = {"jax-jit": "jax", "numpy": "numpy", "torch": "torch", "jax": "jax"}
    for name in backends.split(","):
        pytest.importorskip(needed[name])
    if any("fast/test_fast_gaussian.py" in test for test in tests):
        pytest.importorskip("torch")


def name_of(fault: Fault) -> str:
    return f"{fault.module}: {fault.words}"


def test_every_fault_has_its_place():
    """The text that it changes stands once in its module, and what it becomes is Python."""
    sources = {f.module: (PACKAGE / f"{f.module}.py").read_text(encoding="utf-8") for f in FAULTS}
    assert [name_of(f) for f in FAULTS if sources[f.module].count(f.original) != 1] == []
    for fault in FAULTS:
        changed = sources[fault.module].replace(fault.original, fault.changed)
        compile(changed, name_of(fault), "exec")


def test_every_fault_has_its_name():
    assert [name for name, count in Counter(map(name_of, FAULTS)).items() if count > 1] == []


@pytest.mark.parametrize("backends", sorted({f.backends for f in FAULTS}))
def test_without_a_fault_the_tests_pass(fork_servers, copy, backends):
    selected = (f.tests or TESTS[f.module] for f in FAULTS if f.backends == backends)
    tests = tuple(sorted({test for each in selected for test in each}))
    skip_without(backends, tests)
    code, printed = fork_servers.run(copy, tests, backends, 3600)  # of all faults in one run
    assert code == 0, printed


@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_fault_is_caught(fork_servers, copy, fault: Fault):
    tests = fault.tests or TESTS[fault.module]
    skip_without(fault.backends, tests)
    path = copy / f"{fault.module}.py"
    source = path.read_text(encoding="utf-8")
    path.write_text(source.replace(fault.original, fault.changed), encoding="utf-8")
    code, printed = fork_servers.run(copy, tests, fault.backends)
    assert code == 1, printed
    assert "1 failed" in printed
