"""What every experiment shares: its option, and where its results are kept."""

import argparse
import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from attnbook import devices

FOLDER = Path(__file__).parents[1] / "src/attnbook/datasets/results"


def option(description: str | None, *names: str) -> str:
    """Which of the options was asked for, "" for none. --help shows the description."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    several = parser.add_mutually_exclusive_group()
    for name in names:
        several.add_argument(f"--{name}", action="store_const", const=name, dest="asked")
    asked: str | None = parser.parse_args().asked
    return asked or ""


def asked_quick(description: str | None) -> bool:
    """Whether --quick was asked for: a trial that stores nothing."""
    return option(description, "quick") == "quick"


def store(name: str, **results: Any) -> None:
    """Write results/name.json, which datasets.results reads."""
    found = {"date": date.today().isoformat(), "machine": devices.describe(), **results}
    FOLDER.mkdir(parents=True, exist_ok=True)
    FOLDER.joinpath(f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def summary(numbers: Sequence[float]) -> dict[str, float]:
    """Median, the range in which eight of ten lie, least and most; four digits."""
    names = ("median", "low", "high", "least", "most")
    quantiles = np.quantile(numbers, [0.5, 0.1, 0.9, 0.0, 1.0])
    return {name: float(f"{v:.4g}") for name, v in zip(names, quantiles, strict=True)}
