"""A planted bug must fail a test: the suite is tested here."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from faults import FAULTS, TESTS, Fault, nursery

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "attnbook"

pytestmark = pytest.mark.slow


@pytest.fixture
def copy(tmp_path):
    """A copy of the package: sources, and what Python has compiled of them."""
    target = tmp_path / "attnbook"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("assets"))
    return target


@pytest.fixture(scope="module")
def nurseries(tmp_path_factory):
    """By back ends: processes that have imported them, and run tests in forks.

    What JAX has compiled for one fault it need not compile for the next.
    """
    settings = {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    started: dict[str, subprocess.Popen[str]] = {}

    def of(backends: str) -> subprocess.Popen[str]:
        if backends in started and not nursery.FORKS:  # it has run its one
            started.pop(backends).communicate()
        if backends not in started:
            started[backends] = subprocess.Popen(
                [sys.executable, nursery.__file__, backends],
                env=os.environ | settings,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return started[backends]

    yield of
    for process in started.values():
        process.communicate()


def run_tests(nurseries, copy: Path, tests: tuple[str, ...], backends: str) -> tuple[int, str]:
    """The exit status, as nursery.run has it, and what was printed."""
    config = copy.parent / "pytest.ini"  # the project's own settings name plugins
    config.write_text("[pytest]\nmarkers =\n    slow\n    gpu\nfilterwarnings = error\n")
    options = ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-c", str(config)]
    options += ["--rootdir", str(HERE), *(str(HERE / test) for test in tests)]
    environment = {
        "ATTNBOOK_BACKENDS": backends,
        "PYTHONPATH": str(copy.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "",
    }
    printed = copy.parent / "printed.txt"
    request = {
        "package": str(copy),
        "output": str(printed),
        "environment": environment,
        "options": options,
    }
    process = nurseries(backends)
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    text = printed.read_text(encoding="utf-8", errors="replace") if printed.exists() else ""
    assert answer, text
    return int(answer), text


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
    code, printed = run_tests(nurseries, copy, tests, backends)
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
    code, printed = run_tests(nurseries, copy, tests, fault.backends)
    assert code == 1, printed
    assert "1 failed" in printed


def test_every_module_has_at_least_seven():
    count = Counter(f.module for f in FAULTS)
    for module in TESTS:
        assert count[module] >= 7, module
    assert len({(f.module, f.words) for f in FAULTS}) == len(FAULTS)
