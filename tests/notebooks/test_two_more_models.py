"""The page *Two more models* runs with stored results, without network and models.

With the models it runs when the book is built.
"""

from __future__ import annotations

from typing import Any

import jupytext
import matplotlib as mpl
import torch
from sample import ROOT

PAGE = ROOT / "appendices" / "two-more-models.md"


def test_every_cell_runs_without_the_models(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("ATTNBOOK_OFFLINE", "1")
    monkeypatch.delenv("TABPFN_CHECKPOINT", raising=False)
    cells = [cell.source for cell in jupytext.read(PAGE).cells if cell.cell_type == "code"]
    found: dict[str, Any] = {}
    mpl.use("agg")
    threads = torch.get_num_threads()
    with mpl.rc_context(), torch.random.fork_rng(), torch.no_grad():
        for cell in cells:
            exec(compile(cell, PAGE.name, "exec"), found)
        found["figures"].plt.close("all")
    torch.set_num_threads(threads)
    assert found["albert"] is None
    assert sum(cell.startswith("# Checked: ") for cell in cells) == 2
    assert not (tmp_path / "empty").exists()
