"""Run the project's tests stage by stage, all of them even if one fails, and sum up.

python tools/run_tests.py              every stage (make test)
python tools/run_tests.py lint types   those stages
python tools/run_tests.py hub          a hub for a class, with two students (make test-hub)
python tools/run_tests.py triton       a kernel in Triton's interpreter (make test-triton)
python tools/run_tests.py gpu          the tests and the notebooks on a GPU (make test-gpu)
python tools/run_tests.py faults       whether the tests see planted mistakes (make faults)
python tools/run_tests.py coverage     how much of the package the unit tests run (make coverage)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTEST = "{python} -m pytest -q"
NBVAL = (
    f"{PYTEST} -p nbval_streams --nbval --nbval-current-env "
    "--nbval-sanitize-with tests/notebooks/nbval_sanitize.cfg "
    "-p no:cacheprovider -W default -n 2 --dist loadscope chapters"
)
ASIDE = (
    "site",
    "notebooks",
    "gpu",
    "faults",
    "hub",
    "kernels",
    "distributed",
)  # folders of tests that are stages of their own
UNIT = "tests" + "".join(f" --ignore=tests/{folder}" for folder in ASIDE)
STAGES = {
    "lint": [
        "{python} -m ruff check",
        "{python} -m ruff format --check",
        "{python} -m yamllint --strict .",
    ],
    "types": ["{python} -m mypy"],
    "fresh": ["{python} tools/weave.py --check", "{python} tools/make_plan.py --check"],
    "unit": [f"{PYTEST} {UNIT} -n 2 --dist loadfile"],  # JAX compiles a file's shapes once
    "distributed": [f"{PYTEST} tests/distributed"],  # its tests start processes of their own
    "book": ["{make} book PY={python}"],
    "notebooks": [f"{PYTEST} tests/notebooks -n 2 --maxschedchunk 1"],
    "site": [f"{PYTEST} tests/site -n 2 --dist loadfile --no-loadscope-reorder"],
    "hub": [f"{PYTEST} tests/hub"],
    "triton": [f"{PYTEST} tests/kernels"],
    "gpu": [f"{PYTEST} tests/gpu", NBVAL],
    "faults": [f"{PYTEST} tests/faults -n 2"],
    "coverage": [  # one process: what runs in others does not count
        f"{{python}} -m coverage run -m pytest -q {UNIT}",
        "{python} -m coverage report",
    ],
}
# Small arrays: a thread more than there are processors waits for the others, and that costs most.
# What JAX compiled is kept for the other process, and for the next run.
ENVIRONMENT = {
    "unit": {
        "OMP_NUM_THREADS": "1",
        "JAX_COMPILATION_CACHE_DIR": str(ROOT / "_build" / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    },
    "distributed": {"OMP_NUM_THREADS": "1"},
    "notebooks": {"OMP_NUM_THREADS": "1"},
    "triton": {"OMP_NUM_THREADS": "1"},
}
PATHS = {"triton": "_build/triton"}  # what make test-triton fetched
APART = ("hub", "triton", "gpu", "faults", "coverage")  # not part of make test
ABOUT = {
    "lint": "ruff and yamllint",
    "types": "mypy",
    "fresh": "the notebooks are what the chapters say, the plan what the lectures say",
    "unit": "unit and property tests",
    "distributed": "many processes, eight devices, a worker that is killed",
    "book": "the website builds without a warning",
    "notebooks": "every notebook runs again, as on Colab, and prints the same (minutes)",
    "site": "the website in Chromium, with no network",
    "hub": "a class's hub: two students, their link, what is closed to them",
    "triton": "the Triton kernel in its interpreter, and compiled for GPUs that need not be here",
    "gpu": "the suite's GPU part, and every notebook on the GPU",
    "faults": "mistakes planted in the formulas, one at a time: each fails a test",
    "coverage": "lines and branches of the package that the unit tests run",
}
CHROMIUMS = [
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
]


def chromium() -> str | None:
    """A Chromium or Chrome: $CHROMIUM, the system's, or Playwright's own."""
    for name in [os.environ.get("CHROMIUM", ""), *CHROMIUMS]:
        if name and (path := shutil.which(name)):
            return path
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            path = playwright.chromium.executable_path
    except Exception:  # an incomplete Playwright is no browser, whatever it says
        return None
    return path if Path(path).exists() else None


def gpu() -> str | None:
    """What torch and JAX see beside the CPU; None if neither sees anything."""
    import jax
    import torch

    mps = "mps" if torch.backends.mps.is_available() else None
    for_torch = torch.cuda.get_device_name() if torch.cuda.is_available() else mps
    for_jax = jax.devices()[0].device_kind if jax.default_backend() != "cpu" else None
    if not (for_torch or for_jax):
        return None
    return f"torch runs on {for_torch or 'the CPU'}, JAX on {for_jax or 'the CPU'}"


def run(stage: str) -> bool:
    """Run one stage to its end; True if all its commands succeed."""
    values = {"python": sys.executable, "make": os.environ.get("MAKE", "make")}
    environment = ENVIRONMENT.get(stage, {}) | os.environ
    if stage in PATHS:
        environment["PYTHONPATH"] += os.pathsep + str(ROOT / PATHS[stage])
    codes = []
    for command in STAGES[stage]:
        words = [word.format(**values) for word in command.split()]
        done = subprocess.run(words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)
        codes.append(done.returncode)
    return not any(codes)


def no_browser(stages: list[str]) -> str | None:
    """Let the site's tests find a browser, or say that there is none."""
    if "site" not in stages:
        return None
    if path := chromium():
        os.environ["CHROMIUM"] = path
        return None
    return (
        "No Chromium or Chrome is here: the site's checks cannot run, everything else can.\n"
        "  Do: install one (Debian: apt-get install chromium; elsewhere: python -m playwright "
        "install chromium), or name one: CHROMIUM=/path make test"
    )


def main(stages: list[str]) -> int:
    """Run the stages and print a line for each at the end."""
    if unknown := set(stages) - set(STAGES):
        print(f"no such stage: {', '.join(unknown)}; there are", ", ".join(STAGES))
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
    results: list[tuple[str, str, float]] = []
    for number, stage in enumerate(stages, 1):
        print(f"\n=== {number} of {len(stages)}: {stage} ({ABOUT[stage]}) ===", flush=True)
        start = time.perf_counter()
        if stage == "site" and missing:
            # Where a machine decides, what was not checked has not passed.
            outcome = "failed" if os.environ.get("CI") == "true" else "skipped"
            print(f"{outcome}: no Chromium", flush=True)
        else:
            outcome = "passed" if run(stage) else "failed"
        results.append((stage, outcome, time.perf_counter() - start))
    print("\n=== summary ===")
    for stage, outcome, seconds in results:
        print(f"{outcome:8} {stage:10} {seconds:6.0f} s  {ABOUT[stage]}")
    if missing:
        print(missing)
    outcomes = [outcome for _, outcome, _ in results]
    counts = [f"{outcomes.count(word)} {word}" for word in ("passed", "failed", "skipped")]
    print(f"stages: {', '.join(counts)}", flush=True)
    return "failed" in outcomes


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:] or [stage for stage in STAGES if stage not in APART]))
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
