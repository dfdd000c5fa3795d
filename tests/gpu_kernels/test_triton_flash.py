"""The kernel in Triton: run by its interpreter, and compiled for GPUs, which is no run.

Triton is no part of the environment: make test STAGES=triton fetches it into a folder of its own.
"""

import math
import sys

import numpy as np
import pytest
import torch
from kernel_cases import HALF, PATTERNS, arrays, assert_within_rounding, bounds, expected
from processes import run_python

from attnbook.torch import triton_flash
from attnbook.torch.triton_flash import flash


def test_triton_is_here_and_interprets():
    assert "triton" in sys.modules
    assert not isinstance(triton_flash._compiled(), triton_flash.triton.JITFunction)


@pytest.mark.parametrize(("case", "causal"), PATTERNS)
def test_averages_and_log_sum_exps(case, causal):
    given = arrays(case)
    found = flash(*map(torch.from_numpy, given), causal=causal)
    assert {a.dtype for a in found} == {torch.float32}
    assert_within_rounding(found, *given, causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_with_sums_in_single(dtype, causal):
    given = [torch.from_numpy(a).to(getattr(torch, dtype)) for a in arrays("broken blocks")]
    output, logs = flash(*given, causal=causal)
    assert output.dtype == given[2].dtype and logs.dtype == torch.float32
    exact = [a.float().numpy() for a in given]
    (right, right_logs), (_, bound) = expected(*exact, causal), bounds(*exact, causal)
    np.testing.assert_allclose(output.double(), right, atol=HALF[dtype])
    assert (np.abs(logs.numpy() - right_logs) <= bound).all()


def test_any_strides_and_keys_shared_by_heads():
    q, k, v = arrays("other lengths")
    found = flash(torch.from_numpy(q.mT.copy()).mT, *(torch.from_numpy(a[0]) for a in (k, v)))
    assert_within_rounding(found, q, k[0], v[0])


def test_no_keys_and_no_queries():
    q = torch.ones(2, 3, 4)
    output, logs = flash(q, q[:, :0], q[:, :0])
    assert output.shape == (2, 3, 4) and not output.any()
    assert (logs == -math.inf).all() and logs.shape == (2, 3)
    output, logs = flash(q[:, :0], q, q)
    assert output.shape == (2, 0, 4) and logs.shape == (2, 0)


def test_refuses_a_gradient_that_nobody_would_compute():
    q = torch.ones(5, 4)
    with pytest.raises(ValueError, match="k: wants a gradient"):
        flash(q, q.clone().requires_grad_(), q)
    with torch.no_grad():
        flash(q, q.clone().requires_grad_(), q)


# Triton decides at its import whether it interprets, so each of these is a process of its own.
COMPILED = """
import os
import re
import subprocess
from pathlib import Path
os.environ["TRITON_INTERPRET"] = "0"
import torch
from attnbook.exact.inputs import block_length
from attnbook.torch import triton_flash
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

def compiled(capability, dtype, width, ones=(), warps=4):
    pointers = dict.fromkeys(("q", "k", "v", "output"), "*" + dtype)
    chosen = {"block": block_length(width, int(dtype[2:]) // 8), "d_tile": width, "p_tile": width,
              "causal": True} | dict.fromkeys(ones, 1)
    signature = pointers | {"log_sum_exp": "*fp32"} | dict.fromkeys("mndp", "i32")
    signature |= {"scale": "fp32"} | dict.fromkeys(chosen, "constexpr")
    source = ASTSource(triton_flash._compiled(), signature, chosen)
    target = GPUTarget("cuda", capability, 32)
    return triton.compile(source, target=target, options={"num_stages": 2, "num_warps": warps})

for given in ((75, "fp16", 64), (80, "fp32", 128), (90, "bf16", 256), (90, "bf16", 16, "mndp")):
    found = compiled(*given)
    assert found.asm["cubin"] and found.metadata.shared <= 2**16, given
# in float32 four warps keep kilobytes of each thread in slow memory, sixteen none (chapter 12)
for warps in (4, 16):
    file = Path(os.environ["TRITON_CACHE_DIR"], "kernel.ptx")
    file.write_text(compiled(90, "fp32", 64, warps=warps).asm["ptx"])
    assembler = [triton.knobs.nvidia.ptxas.path, "-v", "-arch=sm_90a", "-o", os.devnull, file]
    said = subprocess.run(assembler, check=True, capture_output=True, text=True).stderr
    (stack,) = {int(size) for size in re.findall(r"(\\d+) bytes stack frame", said)}
    assert stack > 2000 if warps == 4 else stack == 0, said
try:
    triton_flash.flash(*torch.ones(3, 5, 4))
except ValueError as error:
    assert "q: got device cpu, expected a GPU" in str(error), error
else:
    raise AssertionError("a tensor on the CPU went to a kernel for a GPU")
"""


def test_compiles_for_gpus_that_are_not_here(monkeypatch, tmp_path):
    """From Colab's T4 to the H100, within the 64 kilobytes of memory that a block has on a T4."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    run_python(COMPILED)
