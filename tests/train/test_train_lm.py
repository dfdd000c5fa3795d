"""The trainer in one process: options, texts, batches by their number, metrics, checkpoints."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from processes import run_python

from attnbook import train_lm
from attnbook.train import training
from attnbook.train.byte_pairs import learn_pairs
from attnbook.train.language_model import checkpoints
from attnbook.train.language_model.folder import Metrics, own_folder
from attnbook.train.language_model.text import held_out_windows
from attnbook.train.language_model.workers import LOST, barrier, leave_if_lost, share
from attnbook.train_lm import Options, Refused, newest_checkpoint

TEXT = "the cat sat on the mat, the hat on the cat. " * 40
SIZES = ("--rows=2", "--window=8", "--embed-dim=8", "--heads=2", "--layers=1")
SMALL = (*SIZES, "--steps=6", "--every=2", "--device=cpu", "--text")


class Alone:
    """One worker, or one of two whose fellow says what it is told."""

    rank, world = 0, 1

    def __init__(self, *fellows: str) -> None:
        self.fellows = fellows

    def gather(self, message: str) -> list[str]:
        return [message, *self.fellows]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


def test_defaults_are_chapter_eight() -> None:
    options = train_lm.parse([])
    assert options == Options()
    assert (options.rows, options.window, options.learning_rate) == (16, 64, 4e-3)
    assert_array_equal(options.rates(), training.warm_cosine(4e-3, 2000, warmup=50))
    words = "--steps 5 --mode fsdp --checkpoint run --resume --seed 3"
    short = train_lm.parse(words.split())
    assert len(short.rates()) == 5 and short.rates()[-1] < 4e-3
    assert (short.mode, short.checkpoint, short.resume) == ("fsdp", Path("run"), True)
    assert [options.mode_of(1), options.mode_of(2), short.mode_of(1)] == ["none", "ddp", "fsdp"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--steps 0", "--steps: got 0, expected an integer, 1 to 10000000"),
        ("--steps 1000000000000", "--steps: got 1000000000000, expected an integer, 1 to 10000000"),
        ("--seed -1", "expected an integer, 0 to 4294967295"),
        ("--seed 100000000000000000000000000", "expected an integer, 0 to 4294967295"),
        ("--rows 10000000", "--rows: got 10000000, expected an integer, 1 to 1000000"),
        ("--every 0", "--every: got 0, expected an integer, 1 or more"),
        ("--learning-rate nan", "got nan, expected a number above 0"),
        ("--mode tp", "invalid choice: 'tp'"),
        ("--heads 3", "--heads: got 3, expected a divisor of 128"),
        ("--steps 3 --warmup 4", "--warmup: got 4, expected at most 3"),
        ("--resume", "--resume: got no --checkpoint"),
        ("--dropout 1", "--dropout: got 1, expected a number from 0 to below 1"),
        ("--dropout nan", "--dropout: got nan, expected a number from 0 to below 1"),
        ("--weight-decay -0.1", "--weight-decay: got -0.1, expected a number of at least 0"),
        ("--weight-decay inf", "--weight-decay: got inf, expected a number of at least 0"),
        ("--held-out file", "--held-out: got no --text, expected the text to learn from"),
    ],
)
def test_wrong_options(words: str, expected: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as left:
        train_lm.main(words.split())
    assert left.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert expected in said


def test_step_batch_is_the_loop() -> None:
    tokens = np.arange(100) % 7
    for step in (1, 40):
        batch = training.step_batch(tokens, step, rows=4, window=5, seed=3)
        generator = np.random.default_rng([3, step])
        for row, first in zip(batch, generator.integers(0, 95, size=(4, 1))[:, 0], strict=True):
            assert row.tolist() == [tokens[first + i] for i in range(6)]
    arguments = {"tokens": tokens, "step": 40, "rows": 4, "window": 5, "seed": 3}
    assert_array_equal(training.step_batch(**arguments), batch)
    for other in ({"seed": 4}, {"step": 41}):
        assert (training.step_batch(**(arguments | other)) != batch).any()
    last = training.step_batch(np.arange(6), 1, rows=9, window=5, seed=0)
    assert_array_equal(last, np.tile(np.arange(6), (9, 1)))  # the only window there is


@pytest.mark.parametrize(
    "wrong", [{"rows": 0}, {"window": 100}, {"window": 0}, {"seed": -1}, {"step": 0.5}]
)
def test_step_batch_refuses(wrong: dict) -> None:
    arguments = {"step": 1, "rows": 4, "window": 5, "seed": 3} | wrong
    with pytest.raises(ValueError, match=r"got .*, expected"):
        training.step_batch(np.arange(100), **arguments)


@pytest.mark.parametrize(
    "tokens", [list(range(100)), np.arange(100.0), np.arange(100) > 3, "words" * 20, None]
)
def test_step_batch_takes_integers(tokens: object) -> None:
    with pytest.raises(ValueError, match=r"tokens: got .*, expected a NumPy array of integers"):
        training.step_batch(tokens, 1, rows=4, window=5, seed=3)


def test_workers_share_a_batch() -> None:
    batch = np.arange(24).reshape(12, 2)
    for world in (1, 2, 3, 4):
        shares = [share(batch, rank, world) for rank in range(world)]
        assert {len(part) for part in shares} == {12 // world}
        assert_array_equal(np.concatenate(shares), batch)


def test_a_file_or_a_folder(text: Path, tmp_path: Path) -> None:
    one = train_lm.read_text(Options(text=text, window=8))
    assert one.vocabulary == sorted(set(TEXT))
    both = np.concatenate([one.train, one.held_out])
    assert "".join(one.vocabulary[i] for i in both) == TEXT
    assert len(one.held_out) == len(TEXT) // 10
    folder = tmp_path / "folder"
    (folder / "b").mkdir(parents=True)
    (folder / "b" / "2.txt").write_text(TEXT[900:])
    (folder / "1.txt").write_text(TEXT[:900])
    (folder / ".hidden").write_bytes(b"\xff")
    whole = train_lm.read_text(Options(text=folder, window=8))
    words = "".join(whole.vocabulary[i] for i in [*whole.train, *whole.held_out])
    assert words == TEXT[:900] + "\n" + TEXT[900:]


def test_texts_that_are_refused(text: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bytes.txt").write_bytes(b"abc\xff")
    for file, expected in (
        (tmp_path / "none.txt", "got 'No such file or directory' for"),
        (tmp_path / "bytes.txt", "got byte 0xff at 3 in"),
        (tmp_path / "empty", "got 0 tokens to learn from"),
    ):
        with pytest.raises(Refused, match=expected):
            train_lm.read_text(Options(text=file))
    with pytest.raises(Refused, match="expected more than a window of 176"):
        train_lm.read_text(Options(text=text, window=len(TEXT) // 10))


def test_byte_pairs_without_their_library(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(Refused, match="--tokens: got pairs, expected the library regex"):
        train_lm.read_text(Options(text=text, tokens="pairs"))


def test_byte_pairs_by_hand(text: Path) -> None:
    pytest.importorskip("regex")
    pairs = learn_pairs("aab aab aab ab", 259)
    assert pairs.tokens[256:] == ["ab", "aab", "Ġaab"]  # 4 times, 3 times, twice
    assert pairs.decode(pairs.encode("ab aab")) == "ab aab"
    assert learn_pairs("abc", 300).tokens[256:] == []  # what occurs once is no pair
    options = Options(text=text, window=8, tokens="pairs", vocabulary=270)
    found = train_lm.read_text(options)
    assert len(found.vocabulary) == 270 and found.train.max() < 270
    assert len(found.train) < 0.9 * len(TEXT) / 2


def test_held_out_windows_for_any_number_of_workers() -> None:
    text = train_lm.TrainingText(np.arange(9), np.arange(50), [], "")
    for world in (1, 3, 4):
        windows, counts = held_out_windows(text, 6, world)
        assert len(windows) % world == 0 and counts.sum() == 8
        assert windows[0, 0] == 0 and windows[counts].max() == 49
        assert (np.diff(windows) == 1).all()
    assert held_out_windows(text, 6, 1, most=3)[0][:, 0].tolist() == [0, 21, 43]


def test_metrics_go_on(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "metrics"
    first = Metrics(file, 0, 0)
    for step in (1, 2, 3):
        first.write(step, step / 2, 7.0 if step == 2 else None)
    assert file.read_text().splitlines()[1] == '{"step": 2, "loss": 1.0, "held_out": 7.0}'
    with open(file, "a") as opened:
        opened.write('{"step": 4, "lo')  # killed while it wrote
    Metrics(file, 2, 1).write(9, 9.0)  # not rank 0: nothing
    Metrics(file, 2, 0, resume=True).write(3, 5.0)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["step"], line["loss"]) for line in lines] == [(1, 0.5), (2, 1.0), (3, 5.0)]
    with pytest.raises(Refused, match=r"got .*metrics with 3 steps of an earlier run, expected a"):
        Metrics(file, 0, 0)
    full = Metrics(tmp_path / "full", 0, 0)
    full.file = Path("/dev/full")
    full.write(1, 1.0)
    if Path("/dev/full").exists():
        with pytest.raises(Refused, match="got 'No space left on device', expected room"):
            full.check()


@pytest.mark.parametrize("step", [0, 2])
def test_metrics_spare_what_is_none(tmp_path: Path, step: int) -> None:
    """A file of something else stays; one line says what is wrong with it, or with its place."""
    other, folder = tmp_path / "other", tmp_path / "folder"
    folder.mkdir()
    for content in (b"a text", b"a text\n", b'{"a": 3}\n', b"3\n", b"\xff\n\0"):
        other.write_bytes(content)
        with pytest.raises(Refused, match=r"--metrics: got .*other, which holds something else"):
            Metrics(other, step, 0)
        assert other.read_bytes() == content
    for file, expected in (
        (folder, "--metrics: got 'Is a directory' for .*folder, expected a file"),
        (other / "in", "--metrics: got 'File exists' for .*in, expected a file"),
    ):
        with pytest.raises(Refused, match=expected):
            Metrics(file, step, 0)
    assert sorted(tmp_path.iterdir()) == [folder, other]
    link = tmp_path / "link"
    link.symlink_to(os.devnull)  # what is no file is not replaced by one
    Metrics(link, step, 0).write(1, 1.0)
    assert link.is_symlink()


def test_a_folder_that_cannot_be_written(text: Path) -> None:
    """Is refused before the first step."""
    for folder in (text, text / "in"):
        options = Options(checkpoint=folder)
        expected = r"--checkpoint: got .* expected a folder that can be written"
        with pytest.raises(Refused, match=expected), own_folder(options, Alone()):
            pass


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of folders")
def test_two_runs_in_a_folder(tmp_path: Path) -> None:
    said: list[str] = []
    with (
        checkpoints.lock(tmp_path),
        pytest.raises(BlockingIOError, match="Another run has it"),
        checkpoints.lock(tmp_path, wait=0.1, say=said.append),
    ):
        pass
    with checkpoints.lock(tmp_path, say=said.append):
        assert len(said) == 1 and not list(tmp_path.iterdir())


def made(folder: Path, step: int) -> Path:
    writing = checkpoints.prepare(folder, step)
    (writing / "part").write_bytes(bytes(range(100)))
    return checkpoints.publish(writing, {"step": step}, keep=step - 1)


def test_newest_checkpoint_is_whole(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path / "none") is None
    for step in (9, 10, 11):
        made(tmp_path, step)
    assert [checkpoints.step_of(found) for found in checkpoints.of_steps(tmp_path)] == [11, 10]
    assert checkpoints.read(tmp_path / "step-11") == {"step": 11}

    def change(data: bytes) -> list[str]:
        (tmp_path / "step-11" / "part").write_bytes(data)
        said: list[str] = []
        assert newest_checkpoint(tmp_path, said.append) == tmp_path / "step-10"
        return said

    (said,) = change(bytes(range(99)))
    assert said.endswith("got 99 bytes in part, expected 100")
    (said,) = change(bytes(range(99)) + b"a")
    assert "as CRC-32 in part" in said
    (tmp_path / "step-11" / "part").unlink()
    (tmp_path / "writing-step-12").mkdir()
    said = []
    assert newest_checkpoint(tmp_path, said.append) == tmp_path / "step-10"
    assert "never finished" in said[0] and "expected part in it" in said[1]
    os.truncate(tmp_path / "step-10" / "contents.json", 20)
    assert newest_checkpoint(tmp_path, said.append) is None
    replaced = made(tmp_path, 11)  # the damaged one
    assert replaced == newest_checkpoint(tmp_path, said.append)
    assert not (tmp_path / "writing-step-12").exists()


def test_a_barrier_of_all_workers() -> None:
    assert barrier(Alone(), lambda: 3) == 3
    with pytest.raises(Refused, match="rank 1 failed: no room"):
        barrier(Alone("no room"), lambda: 3)

    def fails() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(Refused, match="No space left"):
        barrier(Alone("something else"), fails)


@pytest.mark.parametrize(
    ("words", "lost"),
    [
        ("[pair.cc:534] Connection closed by peer [127.0.0.1]:4321", True),
        ("Gloo all-reduce failed: Read error: Connection reset by peer", True),
        ("Timed out waiting 300000ms for recv operation to complete", True),
        ("NCCL error: A call failed due to a network error or a remote process exiting", True),
        ("Failed to recv, got 0 bytes. Connection was likely closed.", True),
        ("UNAVAILABLE: failed to connect to all addresses", True),
        ("NCCL error: unhandled cuda error, out of memory", False),
        ("No backend type associated with device type cuda, gloo has cpu", False),
        ("the lock of /data/gloo/text was timed out", False),
        ("mat1 and mat2 shapes cannot be multiplied", False),
    ],
)
def test_which_errors_mean_that_a_worker_is_gone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, words: str, lost: bool
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    one, two = Alone(), Alone("")
    two.world = 2
    for worker in (one, two):
        leave_if_lost(worker, RuntimeError(words))
    assert codes == ([LOST] if lost else [])
    assert ("another worker is gone" in capsys.readouterr().err) == lost


def test_a_run_stops_and_goes_on(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """In this process: the same losses, and each refusal in one line."""
    pytest.importorskip("torch")
    warnings.simplefilter("ignore")

    def run(*words: object, folder: str = "run") -> list[float]:
        metrics = tmp_path / f"{folder}.jsonl"
        more = ["--metrics", metrics, "--checkpoint", tmp_path / folder, *words]
        assert train_lm.main([*SMALL, str(text), *map(str, more)]) == 0
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
        assert all(("held_out" in line) == (line["step"] % 2 == 0) for line in lines)
        return [line["loss"] for line in lines]

    whole = run()
    assert len(whole) == 6
    assert [found.name for found in checkpoints.of_steps(tmp_path / "run")] == ["step-6", "step-4"]
    os.truncate(tmp_path / "run" / "step-6" / "__0_0.distcp", 100)
    assert run("--resume") == whole
    said = capsys.readouterr().err
    assert said.count("passed over, damaged") == 1 and "run/step-4" in said
    assert run("--resume", folder="new") == whole  # from the beginning, and says so
    assert "no complete checkpoint in" in capsys.readouterr().err
    for words, expected in (
        ([], "step-6 of an earlier run"),
        (["--resume", "--layers", "2"], "--layers: got 1 in"),
        (["--resume", "--window", "9"], "--window: got 8 in"),
    ):
        more = [*SMALL, str(text), "--checkpoint", str(tmp_path / "run"), *words]
        assert train_lm.main(more) == 2
        assert capsys.readouterr().err.count(expected) == 1
    more = ["--metrics", str(tmp_path / "logged"), "--log-every", "4"]
    assert train_lm.main([*SMALL, str(text), *more]) == 0
    steps = [json.loads(line)["step"] for line in (tmp_path / "logged").read_text().splitlines()]
    assert steps == [2, 4, 6]  # the held-out loss is always logged


def test_the_command_imports_no_back_end_before_it_must() -> None:
    printed = run_python(
        "import sys\nfrom attnbook import train_lm\n"
        "print({'torch', 'jax', 'equinox'} & set(sys.modules))"
    )
    assert printed.strip() == "set()"


def test_workers_agree_on_a_word_that_no_earlier_ones_had() -> None:
    pytest.importorskip("torch")
    from concurrent.futures import ThreadPoolExecutor

    from torch.distributed import HashStore

    from attnbook.distributed.meeting import agreed_word

    store, words = HashStore(), []
    for rank in (1, 2):
        store.set(f"attnbook/shown/{rank}", f"of a worker {rank} that is gone")
    for _ in range(3):
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda rank: agreed_word(store, rank, 3), range(3)))
        assert len(set(found)) == 1
        words.append(found[0])
    assert len(set(words)) == 3


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_the_command_names_the_library_that_is_missing(
    library: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, f"attnbook.{library}.train_lm", raising=False)
    monkeypatch.delitem(sys.modules, f"attnbook.{library}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    assert train_lm.main(["--backend", library, "--steps", "1"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"--backend {library}: got no module {library}, expected it: ")
    assert f'"attnbook[{library}]"' in said
