"""python -m experiments: every experiment, one after the other (hours); --quick tries each."""

from importlib import import_module
from pathlib import Path

SHARED = ("__main__", "harness")

for path in sorted(Path(__file__).parent.glob("*.py")):
    if path.stem not in SHARED:
        print(f"== {path.stem}", flush=True)
        import_module(f"experiments.{path.stem}").main()
