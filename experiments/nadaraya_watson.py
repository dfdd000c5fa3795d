"""Speed and memory of nadaraya_watson against its peers, as ratios within one run.

10,000 points evenly spread, 1 input and 3: each measurement is a process of its own, a warm-up call
(which compiles, for JAX), then the timed ones. The ways take turns, and a ratio is formed within a
round. KernelReg works query by query: it is timed on 200 queries and scaled up. Peak memory is what
the timed calls add to the process's resident set.

The table over bandwidths: standard normal points, 1 to 5 inputs, one and two processors. There the
ways take turns in one process, KernelReg and NumPy on some of the queries, and of each the least
time counts. On one processor the ratios are of the threads' time, which no other program disturbs;
on two of seconds, for what the threads gain. Takes twenty minutes.
"""

import math
import os
import resource
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from multiprocessing import get_context
from typing import Any

import numpy as np

from attnbook import datasets, devices, nadaraya_watson

Call = Callable[[], Any]
BANDWIDTH = {1: 0.25, 3: 0.5}
IN_TORCH = ("torch", "torch, weights", "torch, gradient")
IN_JAX = ("JAX", "JAX, weights", "JAX, gradient")
WAYS = ("KernelReg", "scikit-learn", "NumPy", *IN_TORCH, *IN_JAX, "binned, FFT")
CHECKED = 200
BANDWIDTHS, INPUTS, THREADS = (0.003, 0.03, 0.1, 0.3, 1.0, 3.0), (1, 2, 3, 5), (1, 2)
ASKED = {"KernelReg": 50, "NumPy": 500}  # queries; of the others, all


def values_at(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return datasets.curve(x[:, :1]) + 0.3 * rng.standard_normal((len(x), 1))


def prepare(way: str, x: np.ndarray, y: np.ndarray, h: float) -> Call:
    """The call to be timed, from float64 data; all but KernelReg work in float32."""
    if way == "KernelReg":
        fit = kernel_reg(x, y, h).fit
        return lambda: fit(x[:CHECKED])[0][:, None]
    x, y = x.astype(np.float32), y.astype(np.float32)
    if way == "scikit-learn":
        from sklearn.metrics.pairwise import rbf_kernel

        def ratio_of_sums() -> np.ndarray:
            similarity = rbf_kernel(x, x, gamma=1 / (2 * h * h))
            return similarity @ y / similarity.sum(axis=1, keepdims=True)

        return ratio_of_sums
    if way == "binned, FFT":
        return lambda: binned(x[:, 0], y[:, 0], h)
    if way == "NumPy":
        return lambda: nadaraya_watson(x, x, y, bandwidth=h)
    return prepare_torch(way, x, y, h) if way.startswith("torch") else prepare_jax(way, x, y, h)


def kernel_reg(x: np.ndarray, y: np.ndarray, h: float) -> Any:
    """statsmodels' estimator, "local constant"."""
    from statsmodels.nonparametric.kernel_regression import KernelReg

    d = x.shape[1]
    return KernelReg(y[:, 0], x, var_type="c" * d, reg_type="lc", bw=[h] * d)


def binned(keys: np.ndarray, values: np.ndarray, h: float, bins: int = 4096) -> np.ndarray:
    """On a line: sums in narrow bins, smoothed by FFT, read off by linear interpolation."""
    from scipy.signal import fftconvolve

    edges = np.linspace(-3 - 5 * h, 3 + 5 * h, bins + 1)
    centres, width = (edges[:-1] + edges[1:]) / 2, edges[1] - edges[0]
    kernel = np.exp(-0.5 * (np.arange(1 - bins, bins) * width / h) ** 2)
    count, total = np.histogram(keys, edges)[0], np.histogram(keys, edges, weights=values)[0]
    smooth = [fftconvolve(a, kernel, "same") for a in (total, count)]
    return np.interp(keys, centres, smooth[0] / smooth[1])[:, None]


def prepare_torch(way: str, x: np.ndarray, y: np.ndarray, h: float) -> Call:
    import torch

    keys, values = torch.as_tensor(x), torch.as_tensor(y)
    bandwidth = torch.tensor(h, requires_grad=True)

    def gradient() -> float:
        out = nadaraya_watson(keys, keys, values, bandwidth=bandwidth)
        return torch.autograd.grad(((out - values) ** 2).mean(), bandwidth)[0].item()

    if "gradient" in way:
        return gradient
    how = {"bandwidth": h, "return_weights": "weights" in way}
    return lambda: nadaraya_watson(keys, keys, values, **how)


def prepare_jax(way: str, x: np.ndarray, y: np.ndarray, h: float) -> Call:
    import jax
    import jax.numpy as jnp

    keys, values = jnp.asarray(x), jnp.asarray(y)

    def loss(bandwidth: Any) -> Any:
        return jnp.mean((nadaraya_watson(keys, keys, values, bandwidth=bandwidth) - values) ** 2)

    def predict(keys: Any, values: Any) -> Any:
        return nadaraya_watson(keys, keys, values, bandwidth=h, return_weights="weights" in way)

    if "gradient" in way:
        slope = jax.jit(jax.grad(loss))
        return lambda: float(slope(h))
    compiled = jax.jit(predict)
    return lambda: jax.block_until_ready(compiled(keys, values))


def measure(way: str, n: int, d: int) -> dict[str, float]:
    """Seconds and MiB of one way, in this process."""
    warnings.simplefilter("ignore")  # statsmodels warns of a coming change in pandas
    rng, h = np.random.default_rng(0), BANDWIDTH[d]
    x = rng.uniform(-3, 3, (n, d))
    y = values_at(x, rng)
    call = prepare(way, x, y, h)
    if way != "KernelReg":
        prepare(way, x[:64], y[:64], h)()  # imports and thread pools are not the call's memory
    before = peak_mib()
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    scale = n / CHECKED if way == "KernelReg" else 1
    return {"seconds": min(seconds[1:]) * scale, "MiB": peak_mib() - before}


def peak_mib() -> float:
    """On Linux, which counts in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def over_bandwidths(n: int, d: int, threads: int, rounds: int) -> dict[str, list[float]]:
    """How much slower KernelReg is than each way for each bandwidth, in this process."""
    if hasattr(os, "sched_setaffinity"):  # before a library asks how many processors there are
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import jax
    import jax.numpy as jnp
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d))
    y = values_at(x, rng)
    x32, y32 = x.astype(np.float32), y.astype(np.float32)
    tensors, arrays = (torch.as_tensor(x32), torch.as_tensor(y32)), (jnp.array(x32), jnp.array(y32))
    jitted = jax.jit(lambda x, y, h: nadaraya_watson(x, x, y, bandwidth=h))

    def calls(h: float) -> dict[str, Call]:
        asked, few, one = x[: ASKED["KernelReg"]], x32[: ASKED["NumPy"]], jnp.float32(h)
        fit = kernel_reg(x, y, h).fit
        return {
            "KernelReg": lambda: fit(asked),
            "NumPy": lambda: nadaraya_watson(few, x32, y32, bandwidth=h),
            "torch": lambda: nadaraya_watson(tensors[0], *tensors, bandwidth=h),
            "JAX": lambda: jitted(*arrays, one).block_until_ready(),
        }

    for call in calls(1.0).values():  # a warm-up
        call()
    found: dict[str, list[float]] = {}
    clock = time.process_time if threads == 1 else time.perf_counter
    for h in BANDWIDTHS:
        least: dict[str, float] = {}
        for _ in range(rounds):
            for way, call in calls(h).items():
                start = clock()
                call()
                least[way] = min(clock() - start, least.get(way, math.inf))
        scaled = {way: max(1, n / ASKED.get(way, n)) * taken for way, taken in least.items()}
        for way, taken in scaled.items():
            found.setdefault(way, []).append(scaled["KernelReg"] / taken)
    return found


def alone(function: Callable[..., Any], *given: Any) -> Any:
    """What a function gives in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *given).result()


def all_bandwidths(n: int, rounds: int) -> dict[str, Any]:
    """The table over bandwidths: a process for each row."""
    table = {}
    for d in INPUTS:
        for threads in THREADS:
            name = f"{d} input{'s' * (d > 1)}, {threads} processor{'s' * (threads > 1)}"
            ratios = alone(over_bandwidths, n, d, threads, rounds)
            table[name] = {way: {"ratio": of_way} for way, of_way in ratios.items()}
            print(name, ratios, flush=True)
    made = {"date": date.today().isoformat(), "machine": devices.describe()}
    return {**made, "points": n, "h": list(BANDWIDTHS), "ways": table}


def compare(n: int, d: int, rounds: int) -> dict[str, dict[str, float]]:
    """All ways with d inputs, in turns; the median over the rounds."""
    ways = [way for way in WAYS if d == 1 or way != "binned, FFT"]
    taken: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            taken[way].append(alone(measure, way, n, d))
    rows = {}
    for way, runs in taken.items():
        ratios = [taken["KernelReg"][i]["seconds"] / run["seconds"] for i, run in enumerate(runs)]
        rows[way] = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
        rows[way] |= {"ratio": float(np.median(ratios)), "least": min(ratios), "most": max(ratios)}
        print(d, way, rows[way], flush=True)
    return rows


def main(experiment: Any) -> None:  # the harness is not in the processes that are measured
    n, rounds = (1000, 1) if experiment.quick else (10_000, 3)
    bandwidths = all_bandwidths(n, rounds)
    speed = {f"{n} points, {d} inputs": compare(n, d, rounds) for d in BANDWIDTH}
    experiment.store(speed=speed, bandwidths=bandwidths)
