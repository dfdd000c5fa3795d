"""Execute a notebook and clean what it leaves, so that stored outputs are the reader's outputs."""

import asyncio
import copy
import functools
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from tqdm import tqdm

from attnbook_course.weaving.notebook import RAN, SETUP_TAG, code_cells

TIMEOUT = 600  # seconds a cell
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WIDGET = "application/vnd.jupyter.widget-view+json"
# What libraries say on stderr of the machine, not of the code: bars, and cores that nobody counts.
QUIET = {"TQDM_DISABLE": "1", "LOKY_MAX_CPU_COUNT": str(os.cpu_count())}
MAY_WARN = {"remove-stderr", SETUP_TAG}  # tags of cells that may write there


class ExecutionError(RuntimeError):
    """A cell failed: which chapter, which cell, and Python's traceback."""


class PythonKernels(KernelSpecManager):
    """Offers one kernel: that of the given Python, whatever else is installed."""

    def __init__(self, python: str) -> None:
        super().__init__()
        self.python = python

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The kernel of ``self.python``, for any name."""
        argv = [self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        argv.append("--IPKernelApp.log_level=ERROR")
        return KernelSpec(argv=argv, display_name="Python 3", language="python", env=QUIET)


def execute(
    notebook: NotebookNode, name: str, folder: Path, python: str = sys.executable, row: int = 0
) -> None:
    """Run all cells in place, with a progress bar, and clean the outputs."""
    cells, woven = code_cells(notebook), copy.deepcopy(notebook.metadata)
    bar = tqdm(total=len(cells), desc=name, unit="cell", position=row, file=sys.stderr)
    kernels = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=PythonKernels(python))

    def cell_done(**_: Any) -> None:
        bar.update()

    client = NotebookClient(
        notebook,
        km=kernels,
        timeout=TIMEOUT,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
        on_cell_executed=cell_done,
    )
    try:
        asyncio.run(client.async_execute(cleanup_kc=True))  # closes its loop; kernel included
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        plain = COLOUR.sub("", str(error))
        raise ExecutionError(f"{name}: a cell fails\n{_failed(cells)}\n{plain}") from error
    finally:
        bar.close()
    notebook.metadata = woven  # the kernel has written its own into it
    notebook.metadata[RAN] = NotebookNode(circumstances(python))
    clean(notebook, name)


def circumstances(python: str) -> dict[str, str]:
    """Day, machine and libraries of an execution, for the foot of the page that shows it."""
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine(python)}


@functools.cache  # it loads both libraries, seconds each time, and is the same for every notebook
def machine(python: str) -> str:
    """Machine and libraries of this Python, in one line."""
    command = [python, "-c", "from attnbook import devices; print(devices.describe())"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def clean(notebook: NotebookNode, name: str) -> None:
    """Drop widgets and timings; join streams; refuse stderr and memory addresses."""
    for cell in code_cells(notebook):
        cell.metadata.pop("execution", None)
        outputs: list[NotebookNode] = []
        for output in cell.outputs:
            if output.get("name") == "stderr":
                _refuse_stderr(cell, output.text, name)
                continue
            if WIDGET in output.get("data", {}):
                continue
            if output.output_type == "stream" and outputs and outputs[-1].output_type == "stream":
                outputs[-1].text += output.text
            else:
                outputs.append(output)
        cell.outputs = outputs
        _refuse_addresses(cell, name)


def _refuse_stderr(cell: NotebookNode, text: str, name: str) -> None:
    """What a library warns of is settled where it comes from, or its cell says that it may."""
    if not MAY_WARN & {*cell.metadata.get("tags", [])}:
        raise ExecutionError(
            f"{name}: this cell writes on stderr; settle what it says, or tag the cell "
            f"remove-stderr\n{_head(cell)}\n{text.strip()[:500]}"
        )


def _refuse_addresses(cell: NotebookNode, name: str) -> None:
    """A memory address differs in every run and tells the reader nothing."""
    for output in cell.outputs:
        text = output.get("text", "") + output.get("data", {}).get("text/plain", "")
        found = ADDRESS.search(text)
        if found:
            raise ExecutionError(
                f"{name}: the output of this cell has a memory address, {found[0]!r}; "
                f"end its last line with a semicolon\n{_head(cell)}"
            )


def _failed(cells: list[NotebookNode]) -> str:
    """The head of the cell that raised; of the last one that began if none did."""
    for cell in cells:
        if any(output.output_type == "error" for output in cell.outputs):
            return _head(cell)
    begun = [cell for cell in cells if cell.execution_count is not None]
    return _head((begun or cells)[-1])


def _head(cell: NotebookNode) -> str:
    """The first lines of a cell, to find it by."""
    return "\n".join(f"    {line}" for line in cell.source.splitlines()[:5])
