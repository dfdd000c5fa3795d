"""What the package accepts. An error names the argument, what came and what was expected."""
