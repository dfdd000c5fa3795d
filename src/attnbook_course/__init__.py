"""What the book is taught with: checks, live figures, drawings, plots."""
