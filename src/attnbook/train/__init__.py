"""Training: the loop, byte pairs, and the command that trains a language model."""
