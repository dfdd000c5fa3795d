"""What the trainer of language models needs of a run, whichever back end computes it."""
