"""Speed, memory and error of nadaraya_watson against its peers, as ratios within one run.

    python -m experiments.nadaraya_watson            all sizes; stores the results (20 minutes)
    python -m experiments.nadaraya_watson --quick    1,000 points, one round; stores nothing
    python -m experiments.nadaraya_watson --bandwidths    only the table over bandwidths (minutes),
                                                    stored beside what the last full run found

Each measurement is a process of its own: a warm-up call (which compiles, for JAX), then the timed
ones. The ways take turns, and a ratio is formed within a round, so that a slow spell of the machine
hits both sides. KernelReg works query by query: it is timed on 200 queries and scaled up. Peak
memory is what the timed calls add to the process's resident set.

The table over bandwidths: standard normal points, 1 to 5 inputs, one and two processors. There the
ways take turns in one process, KernelReg and NumPy on some of the queries, scaled up, and of each
the least time counts. "processor" is the time that the process's threads used. On one processor the
ratios are of those, which no other program disturbs; on two of seconds, for what the threads gain.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from attnbook import datasets, devices, nadaraya_watson

STORED = Path(__file__).parents[1] / "src/attnbook/datasets/results/nadaraya_watson.json"
BANDWIDTH = {1: 0.25, 3: 0.5}
IN_TORCH = ("torch", "torch, weights", "torch, gradient")
IN_JAX = ("JAX", "JAX, weights", "JAX, gradient")
WAYS = ("KernelReg", "scikit-learn", "NumPy", *IN_TORCH, *IN_JAX, "binned, FFT")
PLAIN = ("scikit-learn", "torch, weights", "JAX, weights")  # they hold the (n, n) weights
ROUNDS = {1000: 3, 10_000: 3, 50_000: 1}  # by size
CHECKED = 200
BANDWIDTHS, INPUTS, THREADS = (0.003, 0.03, 0.1, 0.3, 1.0, 3.0), (1, 2, 3, 5), (1, 2)
ASKED = {"KernelReg": 50, "NumPy": 500}  # queries; of the others, all


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (n, d))
    return x, datasets.curve(x[:, :1]) + 0.3 * rng.standard_normal((n, 1))


def prepare(way: str, x: np.ndarray, y: np.ndarray, h: float) -> Callable[[], Any]:
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


def prepare_torch(way: str, x: np.ndarray, y: np.ndarray, h: float) -> Callable[[], Any]:
    import torch

    keys, values = torch.as_tensor(x), torch.as_tensor(y)
    if "gradient" not in way:

        def predict() -> np.ndarray:
            out = nadaraya_watson(keys, keys, values, bandwidth=h, return_weights="weights" in way)
            return (out[0] if "weights" in way else out).numpy()

        return predict
    bandwidth = torch.tensor(h, requires_grad=True)

    def gradient() -> float:
        out = nadaraya_watson(keys, keys, values, bandwidth=bandwidth)
        return torch.autograd.grad(((out - values) ** 2).mean(), bandwidth)[0].item()

    return gradient


def prepare_jax(way: str, x: np.ndarray, y: np.ndarray, h: float) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    keys, values = jnp.asarray(x), jnp.asarray(y)
    if "gradient" in way:

        def loss(bandwidth: Any) -> Any:
            return jnp.mean(
                (nadaraya_watson(keys, keys, values, bandwidth=bandwidth) - values) ** 2
            )

        slope = jax.jit(jax.grad(loss))
        return lambda: float(slope(h))

    @jax.jit
    def predict(keys: Any, values: Any) -> Any:
        out = nadaraya_watson(keys, keys, values, bandwidth=h, return_weights="weights" in way)
        return out[0] if "weights" in way else out

    return lambda: np.asarray(predict(keys, values))


def measure(way: str, n: int, d: int) -> dict[str, float]:
    """Seconds, MiB and error of one way, in this process."""
    warnings.simplefilter("ignore")  # statsmodels warns of a coming change in pandas
    x, y = data(n, d)
    h = BANDWIDTH[d]
    call = prepare(way, x, y, h)
    if way != "KernelReg":
        prepare(way, x[:64], y[:64], h)()  # imports and thread pools are not the call's memory
    before = peak_mib()
    start = time.perf_counter()
    answer = call()
    first = time.perf_counter() - start
    seconds = []
    for _ in range(1 if first > 5 else 3):
        start = time.perf_counter()
        answer = call()
        seconds.append(time.perf_counter() - start)
    scale = n / CHECKED if way == "KernelReg" else 1
    result = {"seconds": min(seconds) * scale, "first": first * scale, "MiB": peak_mib() - before}
    if "gradient" not in way:
        exact = nadaraya_watson(x[:CHECKED], x, y, bandwidth=h)
        result["error"] = float(np.abs(answer[:CHECKED] - exact).max())
    return result


def over_bandwidths(n: int, d: int, threads: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of each way for each bandwidth, in this process, and how much slower KernelReg is."""
    if hasattr(os, "sched_setaffinity"):  # before a library asks how many processors there are
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import jax
    import jax.numpy as jnp
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d))
    y = datasets.curve(x[:, :1]) + 0.3 * rng.standard_normal((n, 1))
    x32, y32 = x.astype(np.float32), y.astype(np.float32)
    tensors, arrays = (torch.as_tensor(x32), torch.as_tensor(y32)), (jnp.array(x32), jnp.array(y32))
    jitted = jax.jit(lambda x, y, h: nadaraya_watson(x, x, y, bandwidth=h))

    def calls(h: float) -> dict[str, Callable[[], Any]]:
        asked, one = x[: ASKED["KernelReg"]], jnp.float32(h)
        fit = kernel_reg(x, y, h).fit
        few = x32[: ASKED["NumPy"]]
        return {
            "KernelReg": lambda: fit(asked),
            "NumPy": lambda: nadaraya_watson(few, x32, y32, bandwidth=h),
            "torch": lambda: nadaraya_watson(tensors[0], *tensors, bandwidth=h),
            "JAX": lambda: jitted(*arrays, one).block_until_ready(),
        }

    for call in calls(1.0).values():  # a warm-up
        call()
    found: dict[str, dict[str, list[float]]] = {}
    for h in BANDWIDTHS:
        least: dict[str, tuple[float, float]] = {}
        for _ in range(rounds):
            for way, call in calls(h).items():
                start, used = time.perf_counter(), time.process_time()
                call()
                now = time.perf_counter() - start, time.process_time() - used
                least[way] = tuple(map(min, now, least.get(way, now)))  # type: ignore[assignment]
        for way, times in least.items():
            scaled = [n / min(n, ASKED.get(way, n)) * t for t in times]
            row = found.setdefault(way, {"seconds": [], "processor": [], "ratio": []})
            row["seconds"].append(scaled[0])
            row["processor"].append(scaled[1])
            kind = "processor" if threads == 1 else "seconds"
            row["ratio"].append(found["KernelReg"][kind][-1] / row[kind][-1])
    return found


def all_bandwidths(quick: bool) -> dict[str, Any]:
    """The table over bandwidths, printed and to be stored: a process for each row."""
    n, rounds = (1000, 1) if quick else (10_000, 3)
    table = {}
    for d in (1, 3) if quick else INPUTS:
        for threads in THREADS:
            asked = [str(a) for a in (n, d, threads, rounds)]
            command = [sys.executable, __file__, "--row", *asked]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            ways = json.loads(done.stdout.splitlines()[-1])
            table[f"{d} input{'s' * (d > 1)}, {threads} processor{'s' * (threads > 1)}"] = ways
            print(f"\n{n} points, {d} input(s), {threads} processor(s), x KernelReg; h =")
            print(" " * 10, *(f"{h:8g}" for h in BANDWIDTHS), "   worst")
            for way, row in ways.items():
                ratios = [*row["ratio"], min(row["ratio"])]
                print(f"{way:10s}", *(f"{ratio:8.1f}" for ratio in ratios), flush=True)
    asked = {"points": n, "h": list(BANDWIDTHS)}
    return {"date": date.today().isoformat(), "machine": machine(), **asked, "ways": table}


def machine() -> str:
    return f"{devices.describe()}; {platform.processor() or platform.machine()}"


def peak_mib() -> float:
    per_mib = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / per_mib


def compare(n: int, d: int, rounds: int) -> dict[str, dict[str, float]]:
    """All ways at one size, in turns; the median over the rounds."""
    ways = [way for way in WAYS if not (way in PLAIN and n > 20_000)]  # 10 GB of weights
    ways = [way for way in ways if d == 1 or way != "binned, FFT"]
    taken: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            command = [sys.executable, __file__, "--one", way, str(n), str(d)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            taken[way].append(json.loads(done.stdout.splitlines()[-1]))
    rows = {}
    for way, runs in taken.items():
        ratios = [taken["KernelReg"][i]["seconds"] / run["seconds"] for i, run in enumerate(runs)]
        rows[way] = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
        rows[way] |= {"ratio": float(np.median(ratios)), "least": min(ratios), "most": max(ratios)}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--one", nargs=3, metavar=("WAY", "N", "D"), help="one measurement, as JSON"
    )
    parser.add_argument("--bandwidths", action="store_true")
    parser.add_argument("--row", nargs=4, type=int, help="one row over bandwidths, as JSON")
    options = parser.parse_args()
    if options.row:
        print(json.dumps(over_bandwidths(*options.row)))
        return
    if options.one:
        way, n, d = options.one
        print(json.dumps(measure(way, int(n), int(d))))
        return
    bandwidths = all_bandwidths(options.quick)
    if options.bandwidths:
        store(json.loads(STORED.read_text(encoding="utf-8")) | {"bandwidths": bandwidths})
        return
    speed = {}
    for n in (1000,) if options.quick else ROUNDS:
        for d in (1, 3):
            rows = compare(n, d, 1 if options.quick else ROUNDS[n])
            speed[f"{n} points, {d} inputs"] = rows
            print(
                f"\n{n} points, {d} input(s)   x KernelReg (least … most)  seconds     MiB   error"
            )
            for way, row in rows.items():
                error = f"{row['error']:.0e}" if "error" in row else ""
                ratio = f"{row['ratio']:10.1f} ({row['least']:.1f} … {row['most']:.1f})"
                print(f"{way:16s} {ratio} {row['seconds']:12.4f} {row['MiB']:8.0f}   {error}")
    if not options.quick:
        found = {"speed": speed, "bandwidths": bandwidths}
        store({"date": date.today().isoformat(), "machine": machine(), **found})


def store(results: dict[str, Any]) -> None:
    STORED.parent.mkdir(parents=True, exist_ok=True)
    STORED.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
