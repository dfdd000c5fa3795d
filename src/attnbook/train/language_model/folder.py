"""A run's checkpoints and its file of metrics: where it begins, and what it leaves."""

import json
import math
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attnbook.train.language_model import checkpoints
from attnbook.train.language_model.options import Options
from attnbook.train.language_model.text import TrainingText
from attnbook.train.language_model.workers import Refused, Workers, barrier

MODEL = ("backend", "window", "embed_dim", "heads", "layers", "tokens")
RUN = ("steps", "seed", "rows", "learning_rate", "warmup", "dropout", "weight_decay", "precision")


def settings(options: Options, text: TrainingText, world: int) -> dict[str, Any]:
    """What a checkpoint says of its run, such that JSON can hold it.

    Args:
        options: of the run.
        text: its vocabulary is kept, so that what the model writes can be read, and a hash of its
            tokens, which tells it from another of the same name.
        world: how many workers wrote it.
    """
    kept = {name: str(v) if isinstance(v, Path) else v for name, v in asdict(options).items()}
    kept |= {"vocabulary": text.vocabulary, "vocab_size": len(text.vocabulary)}
    return kept | {"text": text.name, "text_sha256": text.sha256(), "workers": world}


@contextmanager
def own_folder(options: Options, workers: Workers) -> Iterator[None]:
    """Make sure from the first step on that checkpoints can be written, and by this run alone.

    Args:
        options: of the run; with checkpoint None nothing happens.
        workers: of whom rank 0 tries.

    Raises:
        Refused: a folder that cannot be written, or that another run has.
    """
    with ExitStack() as locked:

        def enter() -> None:
            folder = options.checkpoint
            if folder is None or workers.rank > 0:
                return
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder):
                    pass
                locked.enter_context(checkpoints.lock(folder))
            except OSError as error:
                got = f"got '{error.strerror or error}' for {folder}"
                expected = "expected a folder that can be written"
                raise Refused(f"--checkpoint: {got}, {expected}") from error

        barrier(workers, enter)
        yield


class Folder:
    """The checkpoints of a run: where it begins, and what it saves.

    Args:
        options: of the run; with checkpoint None nothing is read or saved.
        text: of the run.
        workers: of whom rank 0 looks into the folder and names what is complete.

    Raises:
        Refused: without resume, a folder that holds a run; a checkpoint of another model.
    """

    def __init__(self, options: Options, text: TrainingText, workers: Workers) -> None:
        self.options, self.workers = options, workers
        self.settings = settings(options, text, workers.world)
        found = barrier(workers, self._found)
        first = workers.gather(found)[0]  # as rank 0 sees the folder
        self.newest = Path(first) if first else None
        self.step = checkpoints.step_of(self.newest) or 0 if self.newest else 0
        if self.newest is not None:
            newest = self.newest
            barrier(workers, lambda: self._check_model(newest))

    def save(self, step: int, write: Callable[[Path], None]) -> None:
        """Save a checkpoint, all workers together.

        Args:
            step: the last one that was taken.
            write: puts this worker's share into a folder; an OSError tells of no room.

        Raises:
            Refused: it could not be written; what was complete is.
        """
        folder = self.options.checkpoint
        if folder is None:
            return
        first, made = self.workers.rank == 0, folder / f"writing-step-{step}"

        def guarded(action: Callable[[], object]) -> Callable[[], object]:
            def run() -> object:
                try:
                    return action()
                except OSError as error:
                    left = self.newest or "none"
                    why = f"--checkpoint: got '{error.strerror or error}' at step {step}"
                    raise Refused(f"{why}, expected room in {folder}; complete: {left}") from error

            return run

        def publish() -> Path:
            return checkpoints.publish(made, self.settings, keep=self.step or None)

        try:
            barrier(self.workers, guarded(lambda: first and checkpoints.prepare(folder, step)))
            barrier(self.workers, guarded(lambda: write(made)))
            barrier(self.workers, guarded(lambda: first and publish()))
        except Refused:
            if first:  # what is cut short would only take room
                shutil.rmtree(made, ignore_errors=True)
            raise
        self.step, self.newest = step, folder / f"step-{step}"

    def _found(self) -> str:
        """The newest complete checkpoint as a string, empty where there is none; for rank 0."""
        folder, resume = self.options.checkpoint, self.options.resume
        if folder is None or self.workers.rank > 0:
            return ""
        if not resume and checkpoints.of_steps(folder):
            latest = checkpoints.of_steps(folder)[0].name
            raise Refused(
                f"--checkpoint: got {folder} with {latest} of an earlier run, "
                "expected an empty folder, or --resume to go on from there"
            )
        newest = checkpoints.newest(folder) if resume else None
        if resume:
            checkpoints.say(
                f"resume: {newest or f'no complete checkpoint in {folder}, from step 1'}"
            )
        return str(newest or "")

    def _check_model(self, newest: Path) -> None:
        """Refuse another model's checkpoint; a word where only the run differs."""
        was, now = checkpoints.read_settings(newest), self.settings
        for name in MODEL:
            if was.get(name) != now[name]:
                option = f"--{name.replace('_', '-')}"
                got = f"{was.get(name)} in {newest}"
                raise Refused(f"{option}: got {got}, expected {now[name]}, as asked for")
        if was.get("vocabulary") != now["vocabulary"]:
            got = f"{was.get('vocab_size')} tokens in {newest}"
            same = "expected a text of the same characters"
            if now["tokens"] == "pairs":
                same = "expected the same text and --vocabulary"
            raise Refused(f"--text: got {got} and {now['vocab_size']} others here, {same}")
        for name in RUN:
            before = was.get(name, getattr(Options(), name))  # older ones lack what came later
            if before != now[name]:
                self._say_changed(name, before, now[name])
        known = was.get("text_sha256", now["text_sha256"])  # older checkpoints have none
        if (was.get("text"), known) != (now["text"], now["text_sha256"]):
            self._say_changed("text", _text_of(was), _text_of(now))

    def _say_changed(self, name: str, was: Any, now: Any) -> None:
        if self.workers.rank == 0:
            checkpoints.say(f"resume: {name} was {was} before {self.newest}, now {now}")


def _text_of(said: dict[str, Any]) -> str:
    """A text's name, and the beginning of its hash."""
    return f"{said.get('text')} (SHA-256 {str(said.get('text_sha256'))[:12]})"


class Metrics:
    """The file of lines of JSON; on resume what came after the checkpoint is dropped, and said.

    Args:
        file: None for none. What is no file, such as /dev/stdout, is written to and never read.
        step: of the checkpoint, 0 at the beginning.
        rank: 0 writes, the others do not.
        resume: whether the run goes on, and may have left lines here.

    Raises:
        Refused: it cannot be written, or holds something else than metrics, or those of an earlier
            run where this one does not resume it.
    """

    def __init__(self, file: Path | None, step: int, rank: int, *, resume: bool = False) -> None:
        self.file = None if rank else file
        self.failed: OSError | None = None
        if file is None or rank:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with open(file, "a", encoding="utf-8"):  # it can be written
                pass
            if file.is_file():
                _keep(file.resolve(), step, resume)
        except OSError as error:
            got = f"got '{error.strerror or error}' for {file}"
            raise Refused(f"--metrics: {got}, expected a file that can be written") from error

    def write(self, step: int, loss: float, held_out: float | None = None) -> None:
        """One line more.

        Args:
            step: from 1.
            loss: of the step's batch, in nats a token.
            held_out: of the held-out text, where it was measured.
        """
        if self.file is not None:
            line = {"step": step, "loss": loss}
            if held_out is not None:
                line["held_out"] = held_out
            try:
                with open(self.file, "a", encoding="utf-8") as file:
                    file.write(f"{json.dumps(line)}\n")
            except OSError as error:  # alone among the workers: the others wait for the next step
                self.failed = error

    def check(self) -> None:
        """Refuse to go on where a line could not be written.

        Raises:
            Refused: no room, no permission.
        """
        if self.failed is not None:
            got = self.failed.strerror
            raise Refused(f"--metrics: got '{got}', expected room for {self.file}")


def check_loss(loss: float, step: int) -> float:
    """The loss, if it is a number.

    Args:
        loss: of all workers.
        step: from 1.

    Raises:
        Refused: it is infinite or none.
    """
    if not math.isfinite(loss):
        raise Refused(f"loss: got {loss} at step {step}, expected a number; try a lower rate")
    return loss


def _keep(file: Path, step: int, resume: bool) -> None:
    """Leave the lines of a file of metrics up to a step; the last line may have been cut short."""
    *lines, rest = file.read_bytes().split(b"\n")
    steps = [re.match(rb'\{"step": (\d+), "loss"', line) for line in lines]
    begin = b'{"step": '
    if not all(steps) or rest[: len(begin)] != begin[: len(rest)]:
        raise Refused(f"--metrics: got {file}, which holds something else, expected a new file")
    if (lines or rest) and not resume:
        got = f"got {file} with {len(lines)} steps of an earlier run"
        raise Refused(f"--metrics: {got}, expected a new file, or --resume to go on from there")
    both = zip(lines, steps, strict=True)
    kept = [line + b"\n" for line, found in both if found and int(found[1]) <= step]
    if len(kept) < len(lines):
        dropped = len(lines) - len(kept)
        checkpoints.say(f"metrics: {dropped} lines of {file} came after step {step}, dropped")
    new = file.with_name(f"{file.name}.new")
    new.write_bytes(b"".join(kept))
    new.replace(file)
