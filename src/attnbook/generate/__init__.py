"""What writes: greedy and beam search, sampling, n-grams."""
