"""Measure anew what the pages state, and store it in attnbook.datasets: some hours a script.

python -m experiments               every script of this folder, one after the other
python -m experiments blocks        one of them, or several
python -m experiments --quick ...   a trial of few steps and one seed, which stores nothing
"""

import argparse
from importlib import import_module
from pathlib import Path

SHARED = ("__main__", "harness")


def main() -> None:
    known = [p.stem for p in sorted(Path(__file__).parent.glob("*.py")) if p.stem not in SHARED]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(known))
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    from experiments.harness import Experiment  # not in the processes that some scripts start

    for name in asked.names or known:
        print(f"== {name}", flush=True)
        import_module(f"experiments.{name}").main(Experiment(name, asked.quick))


if __name__ == "__main__":
    main()
