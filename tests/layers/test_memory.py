"""Without return_weights the (m, n) weights never exist: peak memory of a process of its own."""

from pathlib import Path

import backends
import pytest
from processes import run_python

if not Path("/proc/self/status").is_file():
    pytest.skip("a process's own peak memory is read from Linux' /proc", allow_module_level=True)

N = 7001
WEIGHTS = 4 * N * N / 2**20  # MiB of one (n, n) array in float32: 187
MEASURE = f"""
from pathlib import Path
import numpy as np
from attnbook import kernels, leave_one_out, nadaraya_watson

def peak():  # not getrusage: its number begins with that of the process that started this one
    (line,) = (a for a in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in a)
    return int(line.split()[1]) / 2**10  # MiB

rng = np.random.default_rng(0)
x, y = (rng.normal(size=({N}, 1)).astype(np.float32) for _ in range(2))
"""
RUNS = {
    "numpy": """
before = peak()
out = [nadaraya_watson(x, x, y), leave_one_out(x, y, kernel=kernels.epanechnikov)]
""",
    "torch": """
import torch
torch.ones(2, requires_grad=True).exp().sum().backward()
x, y = torch.from_numpy(x), torch.from_numpy(y)
h = torch.tensor(0.5, requires_grad=True)
before = peak()
out = [nadaraya_watson(x, x, y), nadaraya_watson(x + 1e5, x, y)]
leave_one_out(x, y, bandwidth=h).sum().backward()
out += [h.grad]
""",
    "jax": """
import jax
import jax.numpy as jnp
x, y = jnp.asarray(x), jnp.asarray(y)
loss = lambda x, y, h: leave_one_out(x, y, bandwidth=h).sum()
gradient = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
jax.block_until_ready(gradient(x[:11], y[:11], jnp.float32(0.5)))
before = peak()
out = [nadaraya_watson(x, x, y), gradient(x, y, jnp.float32(0.5))]
jax.block_until_ready(out)
""",
}


@pytest.mark.parametrize("name", RUNS)
def test_memory_grows_with_m_plus_n(name):
    """Prediction, leave-one-out and gradient together need less than one array of weights."""
    backends.load_or_skip(name)
    printed = run_python(MEASURE + RUNS[name] + "print(peak() - before)")
    assert float(printed.split()[-1]) < WEIGHTS


def test_the_measure_sees_the_weights():
    """With return_weights they do exist, and the same measure says so."""
    weights = "before = peak(); out = nadaraya_watson(x, x, y, return_weights=True)\n"
    assert float(run_python(MEASURE + weights + "print(peak() - before)")) > WEIGHTS
