"""Run the project's tests stage by stage, all of them even if one fails, and sum up.

python tools/run_tests.py quick        before a commit: lint, types, what NumPy alone can test
python tools/run_tests.py test         make test: what a newcomer runs
python tools/run_tests.py all          make test-all: every stage, and in each every test
python tools/run_tests.py unit site    those stages, and in each every test
python tools/run_tests.py all --without avx2

A test marked slow repeats what another one shows, or takes long: make test leaves it out.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import partial
from pathlib import Path

import browser
import make_book
from check_environment import ROOT, gpu
from processors import NBVAL, PROCESSORS

PYTEST = "{python} -m pytest -q --junitxml={report}"
# folders of tests that are stages of their own
ASIDE = ("site", "notebooks", "gpu_kernels", "pyodide", "distributed")
UNIT = "tests" + "".join(f" --ignore=tests/{folder}" for folder in ASIDE)
WITHOUT_NUMBERS = "cluster grading held_out homework lectures plan project release terms"
STAGES = {
    "lint": [
        "{python} -m ruff check",
        "{python} -m ruff format --check",
        "{python} -m yamllint --strict .",
    ],
    "types": ["{python} -m mypy"],
    "fresh": ["{python} tools/weave.py --check", "{python} tools/make_plan.py --check"],
    "numpy": [f"{PYTEST} {{numpy_tests}} -k numpy"],  # workers would import longer than they test
    "unit": [f"{PYTEST} {UNIT} -n 2 --dist loadfile"],  # JAX compiles a file's shapes once
    "distributed": [f"{PYTEST} tests/distributed"],  # its tests start processes of their own
    "book": ["{make} book PY={python}"],
    "notebooks": [f"{PYTEST} tests/notebooks -n 2 --maxschedchunk 1"],
    "site": [f"{PYTEST} tests/site -n 2 --dist loadfile --no-loadscope-reorder"],
    "avx2": [
        f"{PYTEST} {UNIT} -n 2 --dist loadfile"
        + "".join(f" --ignore-glob=*/test_{name}*" for name in WITHOUT_NUMBERS.split()),
        "{python} tools/processors.py avx2",
    ],
    "triton": [f"{PYTEST} tests/gpu_kernels"],
    "pyodide": [f"{PYTEST} tests/pyodide"],
    "gpu": [f"{PYTEST} tests/gpu", f"{NBVAL} chapters appendices"],
    "coverage": [  # one process: what runs in others does not count
        f"{{python}} -m coverage run -m pytest -q {UNIT}",
        "{python} -m coverage report",
    ],
}
SETS = {
    "quick": ("lint", "numpy", "types"),
    "test": ("lint", "types", "fresh", "unit", "distributed", "book", "notebooks", "site"),
    "all": tuple(stage for stage in STAGES if stage not in ("numpy", "gpu", "coverage")),
}
# Small arrays: a thread more than there are processors waits for the others, and that costs most.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
# What JAX compiled is kept for the other process, and for the next run.
KEPT = {
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / "_build" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
# Ten thousand small programs are compiled, and a third of the time goes into fusing what is one
# operation. The notebooks and the trainer run JAX as it comes.
UNFUSED = {"XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false"}
ENVIRONMENT = {
    "numpy": {**ONE_THREAD, "ATTNBOOK_BACKENDS": "numpy"},
    "unit": {**ONE_THREAD, **KEPT, **UNFUSED},
    "distributed": ONE_THREAD,
    "notebooks": ONE_THREAD,
    "avx2": {**ONE_THREAD, **PROCESSORS["avx2"], "ATTNBOOK_BACKENDS": "numpy,torch,jax"},
    "triton": ONE_THREAD,
}
# In make test each formula runs in three libraries; the standard's referee and compiled JAX are
# for make test-all, as is what is marked slow.
SHORT_ENVIRONMENT = {"unit": {"ATTNBOOK_BACKENDS": "numpy,torch,jax"}}
# Where another stage, or another test, runs the same and more.
TWICE = {
    "notebooks": "-m=not repeated",  # Colab's test runs every notebook
    "avx2": "-m=not slow",
}
PATHS = {"triton": "_build/triton"}  # what the Makefile fetched
ABOUT = {
    "lint": "ruff and yamllint",
    "types": "mypy",
    "fresh": "the notebooks are what the chapters say, the plan what the lectures say",
    "numpy": "the formulas in NumPy",
    "unit": "unit and property tests",
    "distributed": "many processes, eight devices, a worker that is killed",
    "book": "the website builds without a warning",
    "notebooks": "every notebook runs again and prints the same",
    "site": "the website in Chromium, with no network",
    "avx2": "numbers and notebooks as on a processor with AVX2",
    "triton": "the Triton kernel in its interpreter, and compiled for GPUs that need not be here",
    "pyodide": "the cells that pages run, in Chromium under Pyodide",
    "gpu": "the suite's GPU part, and every notebook on the GPU",
    "coverage": "lines and branches of the package that the unit tests run",
}
LEFT_OUT = {
    "quick": "make test has PyTorch, JAX, the notebooks and the site as well",
    "test": "make test-all has the rest: Colab, Firefox, older processors, Triton, Pyodide",
    "all": "not here: a GPU (STAGES=gpu), the other processors (tools/processors.py), coverage",
}
# What is promised of two idle cores, in seconds; the summary prints what it took beside it.
PROMISED = {
    "lint": 5,
    "types": 45,
    "fresh": 10,
    "numpy": 40,
    "unit": 150,
    "distributed": 40,
    "book": 60,
    "notebooks": 120,
    "site": 60,
}
PROMISED_OF_ALL = PROMISED | {
    "unit": 240,
    "distributed": 90,
    "notebooks": 600,
    "site": 300,
    "triton": 40,
    "pyodide": 180,
}
NEED_BROWSER = ("site", "pyodide")
BOTH = ("smollm2", "rxnmapper")
MODELS = {"unit": BOTH, "avx2": BOTH, "notebooks": BOTH, "site": ("smollm2",)}  # that tests read
MOST = 12  # lines of what failed in a stage that the summary has room for
ON_CI = os.environ.get("CI") == "true"  # where nothing may be skipped
NOT_SEEN: list[str] = []  # what the summary says of that
LOGS = ROOT / "_build" / "tests"


def numpy_tests() -> list[str]:
    """The files of tests that run on every back end and import no other library by themselves."""
    other = re.compile(r"^(?:import|from) (?:torch|jax|equinox|transformers|layer_harness)", re.M)
    own = re.compile(r"^from attnbook(?:\.| import .*\b)(?:torch|jax)\b", re.M)
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "backend" in text and not other.search(text) and not own.search(text):
            found.append(str(path.relative_to(ROOT)))
    return found


def words_of(stage: str, command: str, number: int, short: bool, whole: bool) -> list[str]:
    """A stage's command, its tests chosen."""
    report = ROOT / "_build" / "tests" / f"{stage}-{number}.xml"
    values = {"python": sys.executable, "make": os.environ.get("MAKE", "make"), "report": report}
    words = []
    for word in command.split():
        words += numpy_tests() if word == "{numpy_tests}" else [word.format(**values)]
    if "pytest" in words and "coverage" not in words:
        if stage in TWICE and (whole or stage == "avx2"):
            words.append(TWICE[stage])
        elif short:
            words.append("-m=not slow")
    return words


def xla_starts(flags: dict[str, str]) -> bool:
    """Whether JAX starts with these flags: XLA ends the process at one that it does not know."""
    start = [sys.executable, "-c", "import jax; jax.devices()"]
    return not subprocess.run(start, env=os.environ | flags, capture_output=True).returncode


def run(stage: str, short: bool, whole: bool) -> bool:
    """Run one stage to its end; True if all its commands succeed."""
    environment = ENVIRONMENT.get(stage, {}) | os.environ
    if ON_CI:
        home = Path(tempfile.mkdtemp(prefix=f"home-{stage}-"))
        environment |= own_home(home)
        atexit.register(shutil.rmtree, home, ignore_errors=True)
    with_models = stage in MODELS and not (short and stage == "notebooks")
    if with_models and (lacking := fetch_models(stage, environment)):
        NOT_SEEN.append(lacking)
        if ON_CI:
            return False
    if short:
        environment = SHORT_ENVIRONMENT.get(stage, {}) | environment
    if UNFUSED.items() <= environment.items() and not xla_starts(UNFUSED):
        del environment["XLA_FLAGS"]
    if stage in PATHS:
        environment["PYTHONPATH"] += os.pathsep + str(ROOT / PATHS[stage])
    codes = []
    for number, command in enumerate(STAGES[stage]):
        code, said = make_book.run(words_of(stage, command, number, short, whole), environment)
        codes.append(code)
        with log_of(stage).open("a" if number else "w", encoding="utf-8") as log:
            log.write(said)
    return not any(codes)


def log_of(stage: str) -> Path:
    """Where all that a stage said is kept."""
    return LOGS / f"{stage}.log"


def started(stage: str) -> Callable[[], bool]:
    """Start a stage of one command; what comes back waits for it and shows what it said."""
    log = log_of(stage)
    words = words_of(stage, STAGES[stage][0], 0, short=False, whole=False)
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(words, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)

    def finished() -> bool:
        code = process.wait()
        print(log.read_text(encoding="utf-8"), end="", flush=True)
        return code == 0

    return finished


def failures(stage: str) -> list[str]:
    """Which tests of a stage failed, as pytest takes them; else the last words of its commands."""
    found: list[str] = []
    for report in sorted(LOGS.glob(f"{stage}-*.xml")):
        for case in ElementTree.parse(report).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                found.append(f"{case.get('classname', '')}: {case.get('name', '')}")
    if not found and log_of(stage).exists():
        found = [line for line in log_of(stage).read_text("utf-8").splitlines() if line][-MOST:]
    more = [f"and {len(found) - MOST} more"] if len(found) > MOST else []
    return [*found[:MOST], *more, f"all of it: {log_of(stage).relative_to(ROOT)}"]


def no_browser(stages: list[str]) -> str | None:
    """Let the site's tests find a browser, or bring one; else what nobody will see, and why."""
    if not set(NEED_BROWSER) & set(stages):
        return None
    path, why = browser.chromium(), ""
    if not path:
        print(
            "No Chromium or Chrome is here, so Playwright's headless one comes: 110 MB, into its "
            "folder among your caches. To name another: CHROMIUM=/path make test",
            flush=True,
        )
        try:
            path = browser.fetched()
        except LookupError as problem:
            why = str(problem)
    if path:
        os.environ["CHROMIUM"] = path
        return None
    return (
        "Not seen: the website in a browser, its pages, live figures and phones. There is no "
        f"Chromium or Chrome here, and Playwright's {why}.\n"
        "  Do: install one (Debian: apt-get install chromium), or name one: CHROMIUM=/path make "
        "test; then python tools/run_tests.py site"
    )


def own_home(home: Path) -> dict[str, str]:
    """A home with nothing in it: on CI no stage leans on what another has left in a cache.

    Where packages come from is no cache: the settings of pip and npm come along.
    """
    own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
    own["ATTNBOOK_CACHE"] = str(home / ".cache" / "attnbook")
    settings = {"PIP_CONFIG_FILE": ".config/pip/pip.conf", "NPM_CONFIG_USERCONFIG": ".npmrc"}
    there = {name: Path.home() / path for name, path in settings.items()}
    return {name: str(path) for name, path in there.items() if path.is_file()} | own


def fetch_models(stage: str, environment: dict[str, str]) -> str:
    """Fetch the published models that a stage's tests read; what is lacking and why, or nothing."""
    names = MODELS[stage]
    print(
        f"    published models: {' and '.join(names)}, fetched where they are not here", flush=True
    )
    command = [sys.executable, "-m", "attnbook.pretrained", *names]
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE)
    if not done.returncode:
        return ""
    return f"{stage}: tests that read {' or '.join(names)} are skipped, since it cannot be had here"


def main(asked: list[str]) -> int:
    """Run the stages and print a line for each at the end."""
    names, _, without = " ".join(asked).partition("--without")
    asked, left_out = names.split(), without.split()
    kind = asked[0] if len(asked) == 1 and asked[0] in SETS else ""
    stages = [one for one in (SETS[kind] if kind else asked) if one not in left_out]
    if unknown := {*stages, *left_out} - set(STAGES):
        print(f"no such stage: {', '.join(unknown)}; there are", ", ".join([*SETS, *STAGES]))
        return 2
    os.environ["PYTHONPATH"] = str(ROOT / "tests" / "notebooks")  # has the plugin nbval_streams
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # torch and JAX share one GPU
    if "gpu" in stages:
        found = gpu()
        if found is None:
            print(
                "No GPU: neither torch nor JAX sees one here, so there is nothing to test.\n"
                "  Do: on a machine with a GPU, try nvidia-smi; JAX needs 'jax[cuda13]'.\n"
                "  Still works: make test, which tests everything on the CPU."
            )
            return 1
        print(found)
    missing = no_browser(stages)
    if missing:
        print(missing, flush=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    for report in LOGS.glob("*.xml"):
        report.unlink()
    results: list[tuple[str, str, float]] = []
    # mypy's first run takes a minute of one processor, and the tests in NumPy take the other.
    beside = {"types": started("types")} if kind == "quick" else {}
    for number, stage in enumerate(stages, 1):
        print(f"\n=== {number} of {len(stages)}: {stage} ({ABOUT[stage]}) ===", flush=True)
        start = time.perf_counter()
        if stage in NEED_BROWSER and missing:
            # Where a machine decides, what was not checked has not passed.
            outcome = "failed" if ON_CI else "skipped"
            print(f"{outcome}: no Chromium", flush=True)
        else:
            ends_well = beside.get(stage) or partial(run, stage, kind == "test", kind == "all")
            outcome = "passed" if ends_well() else "failed"
        results.append((stage, outcome, time.perf_counter() - start))
    promised = PROMISED_OF_ALL if kind == "all" else PROMISED
    print("\n=== summary: what it took, and what is promised of two idle cores ===")
    for stage, outcome, seconds in results:
        limit = f"of {promised[stage]:4}" if kind and stage in promised else "       "
        print(f"{outcome:8} {stage:11} {seconds:6.0f} {limit} s  {ABOUT[stage]}")
        for line in failures(stage) if outcome == "failed" else ():
            print(f"           {line}")
    for words in [*NOT_SEEN, *filter(None, [missing])]:
        print(words)
    if kind:
        print(LEFT_OUT[kind])
        whole, most = sum(s for *_, s in results), sum(promised.get(one, 0) for one in stages)
        print(f"in all {whole:.0f} s of {most} s")
    outcomes = [outcome for _, outcome, _ in results]
    counts = [f"{outcomes.count(word)} {word}" for word in ("passed", "failed", "skipped")]
    print(f"stages: {', '.join(counts)}", flush=True)
    return "failed" in outcomes


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:] or ["test"]))
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
