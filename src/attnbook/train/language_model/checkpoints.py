"""Checkpoints of a training in a folder, and its file of metrics.

A checkpoint of step 40 is the folder `step-40`. The back end writes its arrays into
`writing-step-40`; `run.json`, which says of what model they are, comes last; then the folder is
renamed. A process may be killed at any moment: what is called `step-40` is complete, and the
complete checkpoint before it is kept.
"""

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attnbook.train.language_model.options import Options, Refused
from attnbook.train.language_model.text import Vocabulary

RUN = "run.json"
MODEL = ("backend", "tokens", "window", "embed_dim", "heads", "layers")
KEPT = 2


def step_of(checkpoint: Path) -> int:
    """The step of a checkpoint's folder, such as step-40."""
    return int(checkpoint.name.removeprefix("step-"))


def complete(folder: str | Path) -> list[Path]:
    """The complete checkpoints of a folder, which need not be there, the newest first."""
    return sorted((run.parent for run in Path(folder).glob(f"step-*/{RUN}")), key=step_of)[::-1]


def read(checkpoint: Path) -> tuple[dict[str, Any], Vocabulary]:
    """The model's sizes, by the names of the options, and its vocabulary."""
    sizes = json.loads((checkpoint / RUN).read_text(encoding="utf-8"))
    return sizes, Vocabulary(**sizes.pop("vocabulary"))


def begin(options: Options, vocabulary: Vocabulary, rank: int) -> Path | None:
    """The checkpoint to go on from, None for none.

    Rank 0 says which it is, makes the folder, and removes what was never finished.

    Raises:
        Refused: without resume, a folder that holds a run; a checkpoint of another model.
        OSError: no folder that can be written.
    """
    folder = options.checkpoint
    if folder is None:
        return None
    newest = next(iter(complete(folder)), None)
    if newest is not None and not options.resume:
        got = f"got {folder} with {newest.name} of an earlier run"
        raise Refused(f"--checkpoint: {got}, expected a new folder, or --resume to go on there")
    if newest is not None:
        _check_same_model(newest, options, vocabulary)
    if rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob("writing-*"):
            shutil.rmtree(left)
        if options.resume:
            found = newest or f"no complete checkpoint in {folder}, from step 1"
            print(f"resume: {found}", file=sys.stderr, flush=True)
    return newest


def _check_same_model(checkpoint: Path, options: Options, vocabulary: Vocabulary) -> None:
    was, known = read(checkpoint)
    for name in MODEL:
        if was[name] != getattr(options, name):
            got = f"--{name.replace('_', '-')}: got {getattr(options, name)}"
            raise Refused(f"{got}, expected {was[name]}, as in {checkpoint}")
    if known != vocabulary:
        got = f"got {len(vocabulary.tokens)} tokens, expected the {len(known.tokens)} others"
        raise Refused(f"--text: {got} of {checkpoint}: a text of the same characters or pairs")


def publish(written: Path, options: Options, vocabulary: Vocabulary) -> None:
    """Give a folder writing-step-N, which has all arrays, its name, and remove older ones."""
    said = {name: getattr(options, name) for name in MODEL} | {"vocabulary": asdict(vocabulary)}
    (written / RUN).write_text(json.dumps(said), encoding="utf-8")
    written.rename(written.with_name(written.name.removeprefix("writing-")))
    for old in complete(written.parent)[KEPT:]:
        shutil.rmtree(old)


def keep_metrics(file: Path, step: int, *, resume: bool) -> None:
    """Leave the lines of a file of metrics up to a step; the last one may have been cut short.

    Raises:
        Refused: the file is not empty, and is not of a run that goes on.
    """
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    if text and not (resume and text.startswith('{"step": ')):
        got = f"got {file}, which is not empty"
        raise Refused(f"--metrics: {got}, expected a new file, or with --resume this run's own")
    whole = [line for line in text.splitlines(keepends=True) if line.endswith("}\n")]
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    new.write_text("".join(line for line in whole if json.loads(line)["step"] <= step), "utf-8")
    new.replace(file)
