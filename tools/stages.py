"""The stages of the tests: their commands, what they need, and the seconds that are promised."""

from __future__ import annotations

import re

from check_environment import ROOT

PYTEST = "{python} -m pytest -q --junitxml={report}"
NBVAL = (
    "{python} -m pytest -q -p nbval_streams --nbval --nbval-current-env "
    "--nbval-sanitize-with tests/notebooks/nbval_sanitize.cfg "
    "-p no:cacheprovider -W default -n 2 --dist loadscope chapters appendices"
)
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
        NBVAL,
    ],
    "triton": [f"{PYTEST} tests/gpu_kernels"],
    "pyodide": [f"{PYTEST} tests/pyodide -n 2 --maxschedchunk 1"],
    "gpu": [f"{PYTEST} tests/gpu", NBVAL],
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
# As on a processor without AVX-512, whose sums round otherwise: each library's own setting.
AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's own loops
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",  # PyTorch: products of matrices, exp, tanh
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # PyTorch: GELU, convolutions; products in XLA
    "OPENBLAS_CORETYPE": "Haswell",  # NumPy and SciPy: products, solve
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",  # NumPy: exp, tanh
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",  # JAX
}
ENVIRONMENT = {
    "numpy": {**ONE_THREAD, "ATTNBOOK_BACKENDS": "numpy"},
    "unit": {**ONE_THREAD, **KEPT, **UNFUSED},
    "distributed": ONE_THREAD,
    "notebooks": ONE_THREAD,
    "avx2": {**ONE_THREAD, **AVX2, "ATTNBOOK_BACKENDS": "numpy,torch,jax"},
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
# What is promised of two idle cores, in seconds; the summary prints what it took beside it.
PROMISED = {
    "lint": 5,
    "types": 45,
    "fresh": 10,
    "numpy": 40,
    "unit": 160,
    "distributed": 40,
    "book": 60,
    "notebooks": 120,
    "site": 150,
}
PROMISED_OF_ALL = PROMISED | {  # with the bare machine's two minutes, half an hour
    "unit": 200,
    "distributed": 120,
    "notebooks": 600,
    "site": 450,
    "triton": 40,
    "pyodide": 140,
}
NEED_BROWSER = ("site", "pyodide")
BOTH = ("smollm2", "rxnmapper")
MODELS = {"unit": BOTH, "avx2": BOTH, "notebooks": BOTH, "site": ("smollm2",)}  # that tests read


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
