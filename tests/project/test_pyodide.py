"""Pyodide out of an archive: by hash, whole or not at all."""

import json
import tarfile
import zipfile
from base64 import b64encode
from hashlib import sha256

import pyodide
import pytest

FILES = {"a.js": b"one", "b.whl": b"two"}


@pytest.fixture(autouse=True)
def two_files(monkeypatch):
    core = {"a.js": "sha256-" + b64encode(sha256(b"one").digest()).decode()}
    packages = {"b": {"file_name": "b.whl", "sha256": sha256(b"two").hexdigest()}}
    made = {"version": "1", "core": core, "lock": {"packages": packages}}
    monkeypatch.setattr(pyodide, "PYODIDE", json.loads(json.dumps(made)))


def archive(folder, kind, files):
    path = folder / f"archive.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as opened:
            for name, content in files.items():
                opened.writestr(f"inside/{name}", content)
        return path
    with tarfile.open(path, "w:bz2") as opened:
        for name, content in files.items():
            (folder / name).write_bytes(content)
            opened.add(folder / name, f"inside/{name}")
    return path


@pytest.mark.parametrize("kind", ["zip", "tar.bz2"])
def test_unpacked(tmp_path, kind):
    pyodide.unpack(archive(tmp_path, kind, FILES | {"other": b"3"}), tmp_path / "out")
    assert {f.name: f.read_bytes() for f in (tmp_path / "out").iterdir()} == FILES


def test_another_file_of_the_name(tmp_path):
    with pytest.raises(SystemExit, match=r"expected Pyodide 1 with b\.whl$"):
        pyodide.unpack(archive(tmp_path, "zip", FILES | {"b.whl": b"2"}), tmp_path / "out")
