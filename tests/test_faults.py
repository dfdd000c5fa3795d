"""A planted bug must fail a test: the suite is tested here."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from faults import FAULTS, TESTS, Fault

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "attnbook"
# exit 70: another attnbook than the copy; 1: a test failed; 0: all passed; the rest: pytest's own
RUN = """
import sys, pytest, attnbook
if not attnbook.__file__.startswith(sys.argv[1]):
    sys.exit(70)
sys.exit(pytest.main(sys.argv[2:]))
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def copy(tmp_path):
    """A copy of the package: the sources alone."""
    target = tmp_path / "attnbook"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__", "assets"))
    return target


def run_tests(
    copy: Path, tests: tuple[str, ...], backends: str
) -> subprocess.CompletedProcess[str]:
    config = copy.parent / "pytest.ini"  # the project's own settings name plugins
    config.write_text("[pytest]\nmarkers =\n    slow\n    gpu\nfilterwarnings = error\n")
    options = ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-c", str(config)]
    options += ["--rootdir", str(HERE), *(str(HERE / test) for test in tests)]
    environment = os.environ | {
        "ATTNBOOK_BACKENDS": backends,
        "PYTHONPATH": str(copy.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, "-c", RUN, str(copy), *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def skip_without(backends: str, tests: tuple[str, ...]) -> None:
    needed = {"jax-jit": "jax", "numpy": "numpy", "torch": "torch", "jax": "jax"}
    for name in backends.split(","):
        pytest.importorskip(needed[name])
    if any("test_fused.py" in test for test in tests):
        pytest.importorskip("torch")


SELECTIONS = sorted({(f.tests or TESTS[f.module], f.backends) for f in FAULTS})


@pytest.mark.parametrize(("tests", "backends"), SELECTIONS, ids=str)
def test_without_a_fault_the_tests_pass(copy, tests, backends):
    skip_without(backends, tests)
    done = run_tests(copy, tests, backends)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.module}: {f.words}")
def test_fault_is_caught(copy, fault: Fault):
    tests = fault.tests or TESTS[fault.module]
    skip_without(fault.backends, tests)
    path = copy / f"{fault.module}.py"
    source = path.read_text(encoding="utf-8")
    assert source.count(fault.original) == 1, "the original text must occur exactly once"
    path.write_text(source.replace(fault.original, fault.changed), encoding="utf-8")
    compile(path.read_text(encoding="utf-8"), path, "exec")
    done = run_tests(copy, tests, fault.backends)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout


def test_every_core_module_has_at_least_seven():
    count = Counter(f.module for f in FAULTS)
    for module in ("kernels", "scores", "attention", "regression", "streaming", "fused"):
        assert count[module] >= 7, module
    assert len({(f.module, f.words) for f in FAULTS}) == len(FAULTS)
