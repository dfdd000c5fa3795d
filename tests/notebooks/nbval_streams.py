"""A pytest plugin for nbval: compare what a chapter prints and returns, not how it gets there.

Progress bars and warnings go to stderr, which the stored notebooks leave out; figures are drawn
with other digits on other machines. Use: PYTHONPATH=tests/notebooks pytest -p nbval_streams …
"""

import pytest

NOT_COMPARED = ("stderr", "image/svg+xml")


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Tell nbval's notebooks which kinds of output to leave out of the comparison."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += NOT_COMPARED
