"""A run of the trainer that goes on: what its folder may hold, and what is refused in one line."""

from __future__ import annotations

import io
import json
import pickle
import re
import shutil
import warnings
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

from attnbook import train_lm
from attnbook.train.language_model import checkpoints
from attnbook.train.language_model.loop import train_loop
from attnbook.train.language_model.text import TrainingText
from attnbook.train_lm import Options, Refused

torch = pytest.importorskip("torch")

TEXT = "the cat sat on the mat, the hat on the cat. " * 40
SMALL = (
    *("--rows=2", "--window=8", "--embed-dim=8", "--heads=2", "--layers=1"),
    *("--steps=2", "--every=2", "--device=cpu"),
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text and the checkpoint of a short run in it."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "text.txt").write_text(TEXT)
    run(folder)
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A copy."""
    shutil.copytree(trained, tmp_path / "copy")
    return tmp_path / "copy"


def run(folder: Path, *words: str) -> int:
    """The trainer in a folder, so that the text has the same name in each."""
    with warnings.catch_warnings(), chdir(folder):
        warnings.simplefilter("ignore")
        return train_lm.main([*SMALL, "--text=text.txt", "--checkpoint=run", *words])


class Harm:
    """What a pickle can do when it is read: call any function with any arguments."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple:
        return Path.touch, (self.made,)


def sealed_anew(step: Path) -> None:
    """The contents as they should be, with the right CRC-32 of every file."""
    settings = checkpoints.read_settings(step)
    (step / checkpoints.CONTENTS).unlink()
    checkpoints.seal(step, settings)


def test_an_index_runs_nothing(folder: Path, capsys: pytest.CaptureFixture) -> None:
    step = folder / "run" / "step-2"
    (step / ".metadata").write_bytes(pickle.dumps(Harm(folder / "harm")))
    sealed_anew(step)
    assert run(folder, "--resume") == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("--resume: got ") and "Path.touch in .metadata" in said
    assert not (folder / "harm").exists()


def test_a_setting_runs_nothing(folder: Path, capsys: pytest.CaptureFixture) -> None:
    """The optimiser's settings are pickles of their own, at their places in another file."""
    step = folder / "run" / "step-2"
    index = pickle.loads((step / ".metadata").read_bytes())
    name = "optimiser.param_groups.0.betas"
    (info,) = (info for place, info in index.storage_data.items() if place.fqn == name)
    harm = io.BytesIO()
    torch.save(Harm(folder / "harm"), harm)
    file = step / info.relative_path
    info.offset, info.length = file.stat().st_size, len(harm.getvalue())
    file.write_bytes(file.read_bytes() + harm.getvalue())
    (step / ".metadata").write_bytes(pickle.dumps(index))
    sealed_anew(step)
    assert run(folder, "--resume") == 2
    assert "which rank 0 cannot read: Weights only load failed" in capsys.readouterr().err
    assert not (folder / "harm").exists()


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (b"", "which rank 0 cannot read"),
        (pickle.dumps({"state_dict_metadata": {}}), "got a dict in .metadata, expected PyTorch's"),
        (pickle.dumps(print), "got builtins.print in .metadata, which is not called"),
        (b"\x80\x04\x8c\x05torch\x8c\x09os.system\x93.", "got torch.os.system in .metadata"),
    ],
)
def test_an_index_that_is_none(
    folder: Path, capsys: pytest.CaptureFixture, index: bytes, expected: str
) -> None:
    (folder / "run" / "step-2" / ".metadata").write_bytes(index)
    sealed_anew(folder / "run" / "step-2")
    assert run(folder, "--resume") == 2
    assert expected in capsys.readouterr().err


NO_SETTINGS = [("settings", wrong) for wrong in ([], 3, None, "words")]
NO_FILES = [("files", wrong) for wrong in ([], {"part": 3}, {"part": [1, 2, 3]}, {"../a": [1, 2]})]


@pytest.mark.parametrize(("name", "wrong"), NO_SETTINGS + NO_FILES)
def test_settings_and_files_that_are_none(folder: Path, name: str, wrong: object) -> None:
    contents = folder / "run" / "step-2" / checkpoints.CONTENTS
    contents.write_text(json.dumps(json.loads(contents.read_text()) | {name: wrong}))
    if name == "settings":
        with pytest.raises(ValueError, match=r"got a \w+ as settings in contents.json, expected"):
            checkpoints.read(folder / "run" / "step-2")
    assert train_lm.newest_checkpoint(folder / "run", lambda word: None) is None


def test_another_text_of_the_same_name_is_told(folder: Path, capsys: pytest.CaptureFixture) -> None:
    def told(text: str) -> list[str]:
        (folder / "text.txt").write_text(text)
        assert run(folder, "--resume", "--steps=4") == 0
        said = capsys.readouterr().err.splitlines()
        return [line for line in said if line.startswith("resume: text was")]

    assert told(TEXT) == []
    shutil.rmtree(folder / "run" / "step-4")
    other = TEXT.replace("cat", "act")
    (said,) = told(other)
    assert said.count("text.txt (SHA-256 ") == 2
    assert told(other) == []


def test_the_hash_of_a_text_is_of_its_tokens_in_order() -> None:
    def text(train: list[int], held_out: list[int], dtype: type = np.int64) -> str:
        return TrainingText(np.array(train, dtype), np.array(held_out, dtype), [], "").sha256()

    same = text([1, 2, 3], [4])
    assert same == text([1, 2, 3], [4], np.int32) and len(same) == 64
    assert len({same, text([1, 2], [3, 4]), text([2, 1, 3], [4]), text([1, 2, 3], [5])}) == 4


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        (
            TEXT + "xyz",
            (),
            "--text: got 12 tokens in .* and 15 others here, expected a text of the",
        ),
        (TEXT.replace("c", "k"), (), "--text: got 12 tokens in .* and 12 others here, expected a"),
        (TEXT, ("--tokens=pairs",), "--tokens: got characters in .*, expected pairs, as asked"),
    ],
)
def test_another_alphabet(
    folder: Path, capsys: pytest.CaptureFixture, text: str, words: tuple[str, ...], expected: str
) -> None:
    if words:
        pytest.importorskip("regex")
    (folder / "text.txt").write_text(text)
    assert run(folder, "--resume", *words) == 2
    assert re.search(expected, capsys.readouterr().err)


def test_metrics_of_an_earlier_run_stay(folder: Path, capsys: pytest.CaptureFixture) -> None:
    metrics = folder / "metrics"
    metrics.write_text('{"step": 1, "loss": 2.5}\n')
    files = ["--text", str(folder / "text.txt"), "--metrics", str(metrics)]
    assert train_lm.main([*SMALL, *files]) == 2
    assert "with 1 steps of an earlier run, expected a new file" in capsys.readouterr().err
    assert metrics.read_text() == '{"step": 1, "loss": 2.5}\n'
    metrics.write_text('{"step": 2, "loss": 2.5}\n{"step": 3, "loss": 2.5}\n')
    assert run(folder, "--resume", "--metrics", str(metrics)) == 0
    assert "1 lines of" in capsys.readouterr().err
    assert metrics.read_text() == '{"step": 2, "loss": 2.5}\n'


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 7 TiB"),
        MemoryError(),
        RuntimeError("CUDA out of memory. Tried to allocate 32.00 GiB."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 640000000000 bytes."),
    ],
)
def test_a_model_that_the_memory_does_not_hold(error: Exception) -> None:
    """Its parameters, or what a step makes of the rows: at once, or where the loss is read."""

    class Alone:
        rank, world = 0, 1

        def gather(self, message: str) -> list[str]:
            return [message]

    def fails(raised: Exception, where: str) -> None:
        class Model:
            def step(self, *_: object) -> None:
                if where == "step":
                    raise raised

            def loss(self, _: object) -> float:
                raise raised

        def make() -> Model:
            if where == "make":
                raise raised
            return Model()

        text = TrainingText(np.arange(9), np.arange(9), list("abcdefghi"), "")
        options = Options(embed_dim=200_000, rows=1_000_000, window=8)
        train_loop(options, text, Alone(), make)

    with pytest.raises(Refused, match=r"--embed-dim: got 200000 with 2 layers, expected what the"):
        fails(error, "make")
    illegal = RuntimeError("CUDA error: an illegal memory access was encountered")
    for where in ("step", "loss"):
        with pytest.raises(Refused, match=r"^--rows, --window: got 1000000, 8, expected what the"):
            fails(error, where)
    for where in ("make", "step", "loss"):
        with pytest.raises(RuntimeError, match="illegal memory"):
            fails(illegal, where)
