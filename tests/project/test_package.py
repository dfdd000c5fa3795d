"""The package as a whole: what its import brings, and what its docstrings say."""

from __future__ import annotations

import inspect
import re
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from processes import run_python

import attnbook

PAGES = (Path(__file__).resolve().parents[2] / "appendices").glob("api-*.md")
API = "\n".join(page.read_text("utf-8") for page in PAGES)
ALONE = re.findall(r"^\.\. autofunction:: (\S+)$", API, re.MULTILINE)
TOGETHER = re.findall(r"^\.\. automodule:: (\S+)\n +:members:(.*)$", API, re.MULTILINE)


def test_no_back_end_is_imported_for_numpy():
    printed = run_python(
        "import sys, attnbook, attnbook.datasets, attnbook.devices, attnbook.convert\n"
        "import attnbook.train_lm, attnbook.write\n"
        "import attnbook.models.transformer, attnbook.generate.sampling, attnbook.pretrained, numpy\n"
        "x = numpy.ones((67, 2))\n"
        "attnbook.attend(x, x, x, mask=attnbook.causal_mask(67, x))\n"
        "print({'torch', 'jax', 'equinox', 'statsmodels', 'sklearn'} & set(sys.modules))"
    )
    assert printed.strip() == "set()"


@pytest.mark.parametrize("other", ["torch", "jax"])
def test_numpy_needs_no_back_end_at_all(other):
    run_python(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name.split('.')[0] == {other!r}: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import numpy as np, attnbook\n"
        "x = np.ones((3, 2))\n"
        "assert (attnbook.nadaraya_watson(x, x, x) == 1).all()\n"
        "assert (attnbook.attend(x, x, x, mask=attnbook.causal_mask(3, x)) == 1).all()"
    )


def test_names_and_types_are_shipped():
    assert attnbook.__all__ == sorted(attnbook.__all__)
    assert all(hasattr(attnbook, name) for name in attnbook.__all__)
    assert files("attnbook").joinpath("py.typed").is_file()


def shown() -> dict[str, Any]:
    """The functions that the book's pages on the package show."""
    functions = {name: resolve_name(":".join(name.rsplit(".", 1))) for name in ALONE}
    for module, members in TOGETHER:
        if module.endswith("triton_flash"):
            continue  # Triton is no part of the environment
        for name in members.replace(",", " ").split() or dir(resolve_name(module)):
            one = resolve_name(f"{module}:{name}")
            if inspect.isfunction(one) and one.__module__ == module and name[0] != "_":
                functions[f"{module}.{name}"] = one
    return functions


@pytest.mark.parametrize("name", sorted(SHOWN := shown()))
def test_a_docstring_says_what_comes_in_and_what_goes_out(name):
    function = SHOWN[name]
    text = inspect.getdoc(function) or ""
    assert text.split("\n\n")[0].endswith((".", "]")), "the first paragraph is a sentence"
    sections = dict(re.findall(r"^(\w+):\n((?:    .*\n|\n)*)", text + "\n", re.MULTILINE))
    said = re.findall(r"^    (\w+): ", sections.get("Args", ""), re.MULTILINE)
    parameters = list(inspect.signature(function).parameters)
    assert said in (parameters, [])
    assert said or len(parameters) < 5 or re.search(r"\b[Aa]s (for |in )?[\w.]+", text)
