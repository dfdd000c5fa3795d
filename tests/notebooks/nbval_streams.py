"""A pytest plugin for nbval: compare what a chapter prints and returns, not how it gets there.

Figures are drawn with other digits on other machines. What comes on stderr is not compared either:
the stored notebooks have none, and with --quiet-cells a cell that writes there fails. Use: PYTHONPATH=tests/notebooks pytest -p nbval_streams …
A cell that fails is named, with what a reader may ignore.
"""

from collections.abc import Generator

import pytest

NOT_COMPARED = ("stderr", "image/svg+xml")
MAY_WARN = {"remove-stderr", "setup"}  # tags, as of weaving.execution
PRINTS = """\
It runs, its asserts hold, and it prints otherwise than is stored. If only the last digit of a
figure that a trained model gave differs, a reader may ignore that: processors round differently,
and training makes it visible. Please report it, with the processor: that digit should not be
printed. Anything else that differs is a fault."""
WARNS = """\
It writes on stderr, where the book's cells write nothing. Settle what it says where it comes from,
or tag the cell remove-stderr."""
RAISES = """\
It stops with an error. That is a fault, on any processor: if an assert fails, what the text says
does not hold here. If an earlier cell stopped too, look at that one first. Please report it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """An option: libraries of other versions, and a GPU's, may say more than ours."""
    parser.addoption("--quiet-cells", action="store_true", help="fail a cell that writes on stderr")


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Tell nbval's notebooks which kinds of output to leave out of the comparison."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += NOT_COMPARED


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say below a failed cell where it stands, and what a reader may ignore."""
    report = yield
    if report.passed and call.when == "call" and item.config.getoption("quiet_cells"):
        outputs = getattr(item, "test_outputs", None) or []
        said = "".join(output["text"] for output in outputs if output.get("name") == "stderr")
        cell = getattr(item, "cell", None)
        if said and cell and not MAY_WARN & {*cell.metadata.get("tags", [])}:
            report.outcome, report.longrepr = "failed", f"{said}\n{WARNS}\n{cell.source}"
            return report
    if report.failed and call.excinfo and hasattr(item, "cell") and hasattr(item, "cell_num"):
        first = next(iter(item.cell.source.splitlines()), "")
        where = f"{item.path.stem}, cell {item.cell_num}: {first[:50]}"
        differs = "outputs differ" in str(call.excinfo.value)
        report.sections.append((where, PRINTS if differs else RAISES))
    return report
