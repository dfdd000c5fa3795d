"""The loop of the trainer, the same for both back ends: steps, what is logged, what is saved."""

import json
import math
import sys
from typing import Any

from tqdm import tqdm

from attnbook.train.language_model import checkpoints
from attnbook.train.language_model.options import Options, Refused
from attnbook.train.language_model.text import TrainingText
from attnbook.train.training import step_batch


def train_loop(options: Options, text: TrainingText, run: Any) -> None:
    """Take the steps that are left after the newest checkpoint, or all of them.

    The run is an attnbook.torch.train_lm.Run, or JAX's; rank 0 writes metrics.

    Raises:
        Refused: a folder or a checkpoint that does not fit, a loss that is no number.
        OSError: no room, no permission; what was complete still is.
    """
    newest = checkpoints.begin(options, text.vocabulary, run.rank)
    begun = checkpoints.step_of(newest) if newest else 0
    if newest:
        run.load(newest)
    if options.metrics and run.rank == 0:
        checkpoints.keep_metrics(options.metrics, begun, resume=options.resume)
    rates, rows, window = options.rates(), options.rows, options.window
    said = f"step {begun}: nothing left to do"
    often = 0.1 if sys.stderr.isatty() else 10.0  # rarely a line where nobody watches
    bar = tqdm(total=options.steps, initial=begun, disable=run.rank > 0, mininterval=often)
    for step in range(begun + 1, options.steps + 1):
        batch = step_batch(text.train, step, rows=rows, window=window, seed=options.seed)
        loss = run.step(batch, float(rates[step - 1]), step)
        if not math.isfinite(loss):
            got = f"got {loss} at step {step}, expected a number"
            raise Refused(f"loss: {got}; try a lower --learning-rate")
        saving = step % options.every == 0 or step == options.steps
        line = {"step": step, "loss": loss}
        if saving:
            losses = [run.measure(part) for part in text.held_out_batches(rows, window)]
            line["held_out"] = sum(losses) / len(losses)
            said = f"step {step}: loss {loss:.4f}, held out {line['held_out']:.4f} nats a token"
        if options.metrics and run.rank == 0:
            with options.metrics.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(line)}\n")
        bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
        bar.update()
        if saving and options.checkpoint:
            writing = options.checkpoint / f"writing-step-{step}"
            run.save(writing)
            if run.rank == 0:
                checkpoints.publish(writing, options, text.vocabulary)
    bar.close()
    if run.rank == 0:
        print(said, flush=True)
