"""Modules under the names that they had before they moved into rooms, for one release.

`import attnbook.streams` gives what `attnbook.exact.online_softmax` has, and a DeprecationWarning.
"""

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

MOVED = {  # the old name and where its contents are
    "activations": "layers.activations",
    "blocks": "models.blocks layers.norms layers.mlp",
    "byte_pairs": "train.byte_pairs",
    "checks": "course.checks",
    "decoding": "generate.decoding",
    "drawings": "course.drawings",
    "features": "kernel.random_features",
    "figures": "course.figures",
    "flash": "exact.flash",
    "gaussian_process": "kernel.gaussian_process",
    "heads": "attention.heads",
    "images": "kernel.non_local_means",
    "in_context": "datasets.regression_prompts",
    "kernels": "kernel.kernels",
    "kv_cache": "models.kv_cache",
    "linear": "layers.linear",
    "linear_heads": "linear_attention.linear_heads",
    "links": "distributed.communication_time",
    "live": "course.live",
    "losses": "models.losses",
    "ngrams": "generate.ngrams",
    "pages": "exact.paged_cache",
    "pooling": "attention.pooling",
    "positions": "attention.positions",
    "recurrent": "models.recurrent",
    "regression": "kernel.regression",
    "sampling": "generate.sampling",
    "scores": "attention.scores",
    "streams": "exact.online_softmax",
    "test_time": "linear_attention.online_regression",
    "traffic": "distributed.traffic",
    "training": "train.training",
    "transformer": "models.transformer",
}


class _Moved(MetaPathFinder, Loader):
    """Finds attnbook.<old name> and what lies below it."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The module's description, if its name is an old one."""
        targets = new_names(fullname)
        if not targets:
            return None
        spec = ModuleSpec(fullname, self)
        found = find_spec(targets[0])
        if found is not None and found.submodule_search_locations is not None:
            spec.submodule_search_locations = []  # a package, whose modules are found here too
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module that has the name now; one that looks into several where it was divided."""
        targets = new_names(spec.name)
        said = (
            f"{spec.name} is {' and '.join(targets)} now; the old name goes with the next release"
        )
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        module = _Old(spec.name, import_module(targets[0]).__doc__)
        module.targets = [import_module(name) for name in targets]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: what is asked of it is looked up where it is."""

    def get_code(self, fullname: str) -> CodeType | None:
        """What `python -m attnbook.checks` runs."""
        found = find_spec(new_names(fullname)[0])
        code: CodeType | None = found.loader.get_code(fullname) if found else None  # type: ignore
        return code


class _Old(ModuleType):
    targets: list[ModuleType]

    def __getattr__(self, name: str) -> Any:
        for module in self.targets:
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def new_names(old: str) -> list[str]:
    """Where a module is now: none for a name that is no old one."""
    package, _, rest = old.partition(".")
    name, dot, below = rest.partition(".")
    if package != "attnbook" or name not in MOVED:
        return []
    return [f"attnbook.{room}{dot}{below}" for room in MOVED[name].split()]


def install() -> None:
    """Find modules under their old names, after all that really have theirs."""
    sys.meta_path.append(_Moved())
