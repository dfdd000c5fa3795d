"""The notebooks as on other processors: each setting reaches the kernel, and acts."""

import platform
import shutil

import nbformat
import processors
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_notebook, new_output
from sample import ROOT


def test_each_week_tries_every_kind():
    weekly = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text("utf-8"))
    matrix = weekly["jobs"]["processors"]["strategy"]["matrix"]
    assert matrix["processor"] == list(processors.PROCESSORS)


def test_the_notebooks_run_with_the_settings(tmp_path, monkeypatch, capfd):
    """A notebook that has stored what AVX2 gives passes there, and nowhere else."""
    shutil.copytree(ROOT / "tests/notebooks", tmp_path / "tests/notebooks")
    (tmp_path / "chapters").mkdir()
    cell = new_code_cell("import os\nprint(os.environ.get('OPENBLAS_CORETYPE'))")
    cell.outputs = [new_output("stream", name="stdout", text="Haswell\n")]
    cell.execution_count = 1
    nbformat.write(new_notebook(cells=[cell]), tmp_path / "chapters/01-tiny.ipynb")
    monkeypatch.setattr(processors, "ROOT", tmp_path)
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)  # some machines set it for all
    assert processors.main(["avx2"]) == 0
    assert "avx2: prints what is stored" in capfd.readouterr().out
    assert processors.main(["avx2", "one-thread", "--chapters", "01"]) == 1
    printed = capfd.readouterr().out
    assert "avx2: prints what is stored" in printed
    assert "one-thread: differs, see above" in printed
    assert "01-tiny, cell 0: import os" in printed
    assert "a reader may ignore" in printed


def test_unknown_kinds_are_named(capsys):
    with pytest.raises(SystemExit):
        processors.main(["avx1024"])
    assert "no such processor: avx1024; there are one-thread" in capsys.readouterr().err


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the settings are for x86 alone")
def test_the_settings_act_in_every_library():
    here, again = processors.digests({}), processors.digests({})
    assert here == again
    there = processors.digests(processors.PROCESSORS["sse4-one-thread"])
    changed = {name.split()[0] for name in here if here[name] != there[name]}
    assert changed == {"torch", "numpy", "jax"}
