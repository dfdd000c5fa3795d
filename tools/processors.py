"""Run the notebooks as on other processors, and compare what they print with what is stored.

python tools/processors.py                        every kind of processor below (hours)
python tools/processors.py avx2 --chapters 06 09  one kind, two chapters

Each library picks its code by what the processor can do. The settings below make it pick what an
older one would; they are the libraries' own. All have an effect on an Intel processor with
AVX-512, XLA's from SSE4.2 down only. MKL heeds its own on Intel's alone, and none acts on ARM.
"""

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Sequence

from check_environment import ROOT

NBVAL = (
    "{python} -m pytest -q -p nbval_streams --nbval --nbval-current-env "
    "--nbval-sanitize-with tests/notebooks/nbval_sanitize.cfg "
    "-p no:cacheprovider -W default -n 2 --dist loadscope"
)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "NPROC": "1"}  # all but XLA; XLA
PROCESSORS = {
    "one-thread": ONE_THREAD,
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's own loops
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",  # PyTorch: products of matrices, exp, tanh
        "ONEDNN_MAX_CPU_ISA": "AVX2",  # PyTorch: GELU, convolutions; products in XLA
        "OPENBLAS_CORETYPE": "Haswell",  # NumPy and SciPy: products, solve
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",  # NumPy: exp, tanh
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",  # JAX
    },
    "sse4-one-thread": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2",
        **ONE_THREAD,
    },
}


def compare(name: str, chapters: Sequence[str]) -> bool:
    """Run the chapters as on this kind of processor; whether all print what is stored."""
    print(f"== {name}", *(f"{k}={v!r}" for k, v in PROCESSORS[name].items()), flush=True)
    words = [word.format(python=sys.executable) for word in NBVAL.split()]
    files = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.glob("*/*.ipynb"))
        if not chapters or path.name[:2] in chapters
    ]
    plugin = {"PYTHONPATH": str(ROOT / "tests" / "notebooks")}  # nbval_streams
    done = subprocess.run([*words, *files], cwd=ROOT, env=os.environ | plugin | PROCESSORS[name])
    return done.returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="The notebooks as on other processors.")
    parser.add_argument("processors", nargs="*", help=f"of {', '.join(PROCESSORS)}; all by default")
    parser.add_argument("--chapters", nargs="+", default=[], help="their numbers, as in 06")
    options = parser.parse_args(arguments)
    if unknown := set(options.processors) - set(PROCESSORS):
        parser.error(f"no such processor: {', '.join(unknown)}; there are {', '.join(PROCESSORS)}")
    if platform.machine().lower() not in ("x86_64", "amd64"):
        print(f"This is {platform.machine()}: only the number of threads has an effect here.")
    names = options.processors or list(PROCESSORS)
    good = {name: compare(name, options.chapters) for name in names}
    for name, prints_the_same in good.items():
        print(f"{name}: {'prints what is stored' if prints_the_same else 'differs, see above'}")
    return 0 if all(good.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
