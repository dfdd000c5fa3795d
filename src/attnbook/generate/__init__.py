"""What writes: greedy and beam search, sampling, drafts that are judged, n-grams."""
