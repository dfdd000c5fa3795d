"""Write with a language model that attnbook.train_lm has trained, in PyTorch or in JAX.

    python -m attnbook.write run "def "
    python -m attnbook.write run "def " --length 400 --temperature 0.7 --top-p 0.95 --seed 3

The folder is that of the trainer's --checkpoint; its newest checkpoint is read. Write only with a
folder that you, or people whom you trust, have written: a part of PyTorch's is a pickle.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from attnbook.generate.sampling import probabilities
from attnbook.train.language_model import checkpoints
from attnbook.train.language_model.options import COUNT, NOT_NEGATIVE, WHOLE, Options, Refused
from attnbook.train.language_model.options import number as reader
from attnbook.train_lm import REFUSED, engine_of

Logits = Callable[[Int[np.ndarray, "1 window"]], Float[np.ndarray, "1 window vocab"]]
SHARE = reader(float, "a number above 0, at most 1", lambda x: 0 < x <= 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status.

    Args:
        arguments: the words after the name; None for the process's own.
    """
    raw = argparse.RawDescriptionHelpFormatter
    usage = "python -m attnbook.write folder prompt [options]; --help names them"
    parser = argparse.ArgumentParser(usage=usage, description=__doc__, formatter_class=raw)
    parser.add_argument("folder", type=Path, help="of the checkpoints")
    parser.add_argument("prompt", help="what the text begins with")
    parser.add_argument("--length", type=COUNT, default=400, help="tokens (%(default)s)")
    parser.add_argument("--temperature", type=NOT_NEGATIVE, default=1.0, help="0: the likeliest")
    parser.add_argument("--top-p", type=SHARE, default=1.0, help="the likeliest, of this share")
    parser.add_argument("--seed", type=WHOLE, default=0, help="of the draws (%(default)s)")
    asked = parser.parse_args(arguments)
    try:
        newest = next(iter(checkpoints.complete(asked.folder)), None)
        if newest is None:
            raise Refused(f"folder: got no complete checkpoint in {asked.folder}, expected one")
        sizes, vocabulary = checkpoints.read(newest)
        options = Options(**sizes, mode="none")
        engine = engine_of(options.backend)
        with engine.workers(options):
            run = engine.Run(options, len(vocabulary.tokens))
            run.load(newest)
            rng = np.random.default_rng(asked.seed)
            how = {"temperature": asked.temperature, "top_p": asked.top_p}
            prompt = vocabulary.encode(asked.prompt)
            tokens = write(run.logits, prompt, asked.length, options.window, rng, **how)
            print(asked.prompt + vocabulary.decode(tokens))
    except (ValueError, OSError) as refused:
        print(refused, file=sys.stderr)
        return REFUSED
    return 0


def write(
    logits: Logits,
    prompt: Int[np.ndarray, " n"],
    length: int,
    window: int,
    rng: np.random.Generator,
    *,
    temperature: float = 1.0,
    top_p: float = 1.0,
) -> Iterator[int]:
    """Tokens that a model draws after a prompt, each from at most a window of those before it.

    Args:
        logits: of a window of tokens; what stands behind a token does not count for it.
        prompt: token numbers, at least one.
        length: how many to draw, without regard to the window.
        window: tokens that the model reads.
        rng: with which they are drawn.
        temperature: as in generate.sampling.probabilities.
        top_p: as in generate.sampling.probabilities.

    Raises:
        ValueError: a prompt without tokens.
    """
    if len(prompt) == 0:
        raise ValueError("prompt: got no tokens, expected at least one")
    tokens = [int(token) for token in prompt]
    for _ in range(length):
        read = tokens[-window:]
        padded = np.zeros((1, window), dtype=np.int64)  # one shape: JAX compiles once
        padded[0, : len(read)] = read
        last = logits(padded)[0, len(read) - 1]
        p = probabilities(last, temperature=temperature, top_p=top_p)
        tokens.append(int(rng.choice(len(p), p=p)))
        yield tokens[-1]


if __name__ == "__main__":
    sys.exit(main())
