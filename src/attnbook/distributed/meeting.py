"""Where the workers of a launch find each other, whatever earlier ones have left there."""

import time
import uuid
from datetime import timedelta
from typing import Any

MEETING = timedelta(minutes=5)  # that the workers wait for each other at the start


def agreed_word(store: Any, rank: int, world: int) -> str:
    """A word that these workers have in common, and no earlier ones had.

    Each shows a word of its own, rank 0 answers it with the common one, and is told that the
    answer was heard. What an earlier worker shows is answered too, and nobody hears it. (The
    number of restarts is no such word: each of several launchers counts its own.)

    Args:
        store: torchrun's, a torch.distributed.Store that outlives the workers.
        rank: of this worker.
        world: how many there are.

    Raises:
        RuntimeError: some did not come in time.
    """
    own = uuid.uuid4().hex
    if rank > 0:
        store.set(f"attnbook/shown/{rank}", own)
        common = store.get(f"attnbook/answer/{own}").decode()  # waits for it
        store.set(f"attnbook/heard/{common}/{rank}", "")
        return common
    end, missing = time.monotonic() + MEETING.total_seconds(), set(range(1, world))
    while missing:
        if time.monotonic() > end:
            raise RuntimeError(f"workers {sorted(missing)} did not come within {MEETING}")
        for other in sorted(missing):
            if store.check([f"attnbook/shown/{other}"]):
                shown = store.get(f"attnbook/shown/{other}").decode()
                store.set(f"attnbook/answer/{shown}", own)
            if store.check([f"attnbook/heard/{own}/{other}"]):
                missing.remove(other)
        time.sleep(0.02)
    return own
