"""Run the notebooks as on other processors, and compare what they print with what is stored.

python tools/processors.py                        every kind of processor below (hours)
python tools/processors.py avx2 --chapters 06 09  one kind, two chapters
python tools/processors.py --effects              which setting changes the bits of what, here

Each library picks its code by what the processor can do. The settings below make it pick what an
older one would; they are the libraries' own. All have an effect on an Intel processor with
AVX-512, XLA's from SSE4.2 down only. MKL heeds its own on Intel's alone, and none acts on ARM.
"""

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence

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


def arithmetic() -> dict[str, str]:
    """What each library makes of the same numbers, as a digest of all bits."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import torch

    numbers = np.random.default_rng(0).normal(size=(300, 300))
    single = numbers.astype(np.float32)
    tensor, array = torch.tensor(single), jnp.asarray(single)

    def trained(steps: int = 50) -> torch.Tensor:
        torch.manual_seed(0)
        first = torch.nn.Linear(300, 64)
        model = torch.nn.Sequential(first, torch.nn.Tanh(), torch.nn.Linear(64, 1))
        descent = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(steps):
            descent.zero_grad()
            ((model(tensor) - tensor[:, :1]) ** 2).mean().backward()
            descent.step()
        return first.weight.detach()

    def trained_by_jax(steps: int = 50) -> jax.Array:
        def loss(weight: jax.Array) -> jax.Array:
            return jnp.mean((jnp.tanh(array @ weight).sum(1) - array[:, 0]) ** 2)

        slope, weight = jax.jit(jax.grad(loss)), array[:, :64] / 20
        for _ in range(steps):
            weight = weight - 0.01 * slope(weight)
        return weight

    made: dict[str, Callable[[], object]] = {
        "torch product": lambda: tensor @ tensor,
        "torch tanh": tensor.tanh,
        "torch softmax": lambda: tensor.softmax(-1),
        "torch sum": tensor.sum,
        "torch gelu": lambda: torch.nn.functional.gelu(tensor),
        "torch training": trained,
        "numpy product": lambda: numbers @ numbers,
        "numpy solve": lambda: np.linalg.solve(numbers, numbers[:, :2]),
        "numpy exp": lambda: np.exp(numbers),
        "numpy tanh": lambda: np.tanh(single),
        "jax product": lambda: array @ array,
        "jax tanh": lambda: jnp.tanh(array),
        "jax sum": array.sum,
        "jax training": trained_by_jax,
    }
    return {
        name: hashlib.sha256(np.ascontiguousarray(make()).tobytes()).hexdigest()
        for name, make in made.items()
    }


def digests(settings: dict[str, str]) -> dict[str, str]:
    """`arithmetic` in a process of its own that starts with these settings."""
    code = "import json, processors; print(json.dumps(processors.arithmetic()))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "tools",
        env=os.environ | settings,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def effects() -> None:
    """Print, for every setting alone, what it changes on this machine."""
    here = digests({})
    alone = {(k, v) for settings in PROCESSORS.values() for k, v in settings.items()}
    for name, value in sorted(alone):
        found = digests({name: value})
        changed = ", ".join(what for what in here if found[what] != here[what])
        print(f"{name}={value}: {changed or 'nothing'}", flush=True)


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
    parser.add_argument("--effects", action="store_true", help="what each setting changes here")
    options = parser.parse_args(arguments)
    if unknown := set(options.processors) - set(PROCESSORS):
        parser.error(f"no such processor: {', '.join(unknown)}; there are {', '.join(PROCESSORS)}")
    if platform.machine().lower() not in ("x86_64", "amd64"):
        print(f"This is {platform.machine()}: only the number of threads has an effect here.")
    if options.effects:
        effects()
        return 0
    names = options.processors or list(PROCESSORS)
    good = {name: compare(name, options.chapters) for name in names}
    for name, prints_the_same in good.items():
        print(f"{name}: {'prints what is stored' if prints_the_same else 'differs, see above'}")
    return 0 if all(good.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
