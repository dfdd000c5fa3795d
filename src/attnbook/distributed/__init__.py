"""What many devices cost, and how their processes meet."""
