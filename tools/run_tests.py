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
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import browser
import make_book
import stages
from check_environment import ROOT, gpu
from stages import SETS, STAGES

MOST = 12  # lines of what failed in a stage that the summary has room for
ON_CI = os.environ.get("CI") == "true"  # where nothing may be skipped
NOT_SEEN: list[str] = []  # what the summary says of that
LOGS = ROOT / "_build" / "tests"


def words_of(stage: str, command: str, number: int, kind: str) -> list[str]:
    """A stage's command, its tests chosen."""
    report = LOGS / f"{stage}-{number}.xml"
    values = {"python": sys.executable, "make": os.environ.get("MAKE", "make"), "report": report}
    words = []
    for word in command.split():
        words += stages.numpy_tests() if word == "{numpy_tests}" else [word.format(**values)]
    if "pytest" in words and "coverage" not in words:
        if stage in stages.TWICE and (kind == "all" or stage == "avx2"):
            words.append(stages.TWICE[stage])
        elif kind == "test":
            words.append("-m=not slow")
    return words


def xla_starts(flags: dict[str, str]) -> bool:
    """Whether JAX starts with these flags: XLA ends the process at one that it does not know."""
    start = [sys.executable, "-c", "import jax; jax.devices()"]
    return not subprocess.run(start, env=os.environ | flags, capture_output=True).returncode


def run(stage: str, kind: str) -> bool:
    """Run one stage to its end; True if all its commands succeed."""
    environment = stages.ENVIRONMENT.get(stage, {}) | os.environ
    if ON_CI:
        home = Path(tempfile.mkdtemp(prefix=f"home-{stage}-"))
        environment |= own_home(home)
        atexit.register(shutil.rmtree, home, ignore_errors=True)
    with_models = stage in stages.MODELS and not (kind == "test" and stage == "notebooks")
    if with_models and not fetch_models(stage, environment) and ON_CI:
        return False
    if kind == "test":
        environment = stages.SHORT_ENVIRONMENT.get(stage, {}) | environment
    if stages.UNFUSED.items() <= environment.items() and not xla_starts(stages.UNFUSED):
        del environment["XLA_FLAGS"]
    if stage in stages.PATHS:
        environment["PYTHONPATH"] += os.pathsep + str(ROOT / stages.PATHS[stage])
    codes = []
    for number, command in enumerate(STAGES[stage]):
        code, said = make_book.run(words_of(stage, command, number, kind), environment)
        codes.append(code)
        with log_of(stage).open("a" if number else "w", encoding="utf-8") as log:
            log.write(said)
    return not any(codes)


def log_of(stage: str) -> Path:
    """Where all that a stage said is kept."""
    return LOGS / f"{stage}.log"


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


def no_browser() -> str:
    """Let the site's tests find a browser, or bring one; else what nobody will see, and why."""
    path = browser.chromium()
    if not path:
        print(
            "No Chromium or Chrome is here, so Playwright's headless one comes: 110 MB", flush=True
        )
        try:
            path = browser.fetched()
        except LookupError as problem:
            return (
                "Not seen: the website in a browser. There is no Chromium or Chrome here, and "
                f"Playwright's {problem}.\n"
                "  Do: install one (Debian: apt-get install chromium), or name one: "
                "CHROMIUM=/path make test; then python tools/run_tests.py site"
            )
    os.environ["CHROMIUM"] = path
    return ""


def own_home(home: Path) -> dict[str, str]:
    """A home with nothing in it: on CI no stage leans on what another has left in a cache.

    Where packages come from is no cache: the settings of pip and npm come along.
    """
    own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
    own["ATTNBOOK_CACHE"] = str(home / ".cache" / "attnbook")
    settings = {"PIP_CONFIG_FILE": ".config/pip/pip.conf", "NPM_CONFIG_USERCONFIG": ".npmrc"}
    there = {name: Path.home() / path for name, path in settings.items()}
    return {name: str(path) for name, path in there.items() if path.is_file()} | own


def fetch_models(stage: str, environment: dict[str, str]) -> bool:
    """Fetch the published models that a stage's tests read; whether they are here."""
    names = stages.MODELS[stage]
    print(f"    published models: {' and '.join(names)}, fetched where they lack", flush=True)
    command = [sys.executable, "-m", "attnbook.pretrained", *names]
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE)
    if done.returncode:
        NOT_SEEN.append(f"{stage}: tests that read {' or '.join(names)} are skipped: not to be had")
    return not done.returncode


def main(asked: list[str]) -> int:
    """Run the stages and print a line for each at the end."""
    names, _, without = " ".join(asked).partition("--without")
    asked, left_out = names.split(), without.split()
    kind = asked[0] if len(asked) == 1 and asked[0] in SETS else ""
    chosen = [one for one in (SETS[kind] if kind else asked) if one not in left_out]
    if unknown := {*chosen, *left_out} - set(STAGES):
        print(f"no such stage: {', '.join(unknown)}; there are", ", ".join([*SETS, *STAGES]))
        return 2
    os.environ["PYTHONPATH"] = str(ROOT / "tests" / "notebooks")  # has the plugin nbval_streams
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # torch and JAX share one GPU
    if "gpu" in chosen:
        print(found := gpu() or "No GPU: neither torch nor JAX sees one here. Do: make test")
        if found.startswith("No GPU"):
            return 1
    missing = no_browser() if set(stages.NEED_BROWSER) & set(chosen) else ""
    LOGS.mkdir(parents=True, exist_ok=True)
    for report in LOGS.glob("*.xml"):
        report.unlink()
    results: list[tuple[str, str, float]] = []
    for number, stage in enumerate(chosen, 1):
        print(f"\n=== {number} of {len(chosen)}: {stage} ({stages.ABOUT[stage]}) ===", flush=True)
        start = time.perf_counter()
        if stage in stages.NEED_BROWSER and missing:
            # Where a machine decides, what was not checked has not passed.
            outcome = "failed" if ON_CI else "skipped"
            print(f"{outcome}: no Chromium", flush=True)
        else:
            outcome = "passed" if run(stage, kind) else "failed"
        results.append((stage, outcome, time.perf_counter() - start))
    promised = stages.PROMISED_OF_ALL if kind == "all" else stages.PROMISED
    print("\n=== summary: what it took, and what is promised of two idle cores ===")
    for stage, outcome, seconds in results:
        limit = f"of {promised[stage]:4}" if kind and stage in promised else "       "
        print(f"{outcome:8} {stage:11} {seconds:6.0f} {limit} s  {stages.ABOUT[stage]}")
        for line in failures(stage) if outcome == "failed" else ():
            print(f"           {line}")
    print(*NOT_SEEN, missing, sep="\n")
    if kind:
        budget = sum(promised.get(stage, 0) for stage in chosen)
        print(f"in all {sum(s for *_, s in results):.0f} s of {budget} s")
    outcomes = [outcome for _, outcome, _ in results]
    counts = [f"{outcomes.count(word)} {word}" for word in ("passed", "failed", "skipped")]
    print(f"stages: {', '.join(counts)}", flush=True)
    return "failed" in outcomes


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:] or ["test"]))
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
