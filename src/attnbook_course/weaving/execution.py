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
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WIDGET = "application/vnd.jupyter.widget-view+json"
# What libraries say on stderr of the machine, not of the code: bars, and cores that nobody counts.
QUIET = {"TQDM_DISABLE": "1", "LOKY_MAX_CPU_COUNT": str(os.cpu_count())}
QUIET |= {"ATTNBOOK_MINE": os.devnull}  # the pages have the book's builds, not those of an author
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
        raise ExecutionError(f"{name}: a cell fails\n{COLOUR.sub('', str(error))}") from error
    finally:
        bar.close()
    notebook.metadata = woven  # the kernel has written its own into it
    day = f"{datetime.now(UTC):%Y-%m-%d}"  # for the foot of the page
    notebook.metadata[RAN] = NotebookNode(date=day, machine=machine(python))
    clean(notebook, name)


@functools.cache  # it loads both libraries, seconds each time, and is the same for every notebook
def machine(python: str) -> str:
    """Machine and libraries of this Python, in one line."""
    command = [python, "-c", "from attnbook import devices; print(devices.describe())"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def clean(notebook: NotebookNode, name: str) -> None:
    """Drop widgets and timings; join streams; refuse stderr, unless the cell's tag allows it.

    What a library warns of is settled where it comes from.
    """
    for cell in code_cells(notebook):
        cell.metadata.pop("execution", None)
        outputs: list[NotebookNode] = []
        for output in cell.outputs:
            if output.get("name") == "stderr":
                if not MAY_WARN & {*cell.metadata.get("tags", [])}:
                    raise ExecutionError(
                        f"{name}: this cell writes on stderr; settle what it says, or tag the cell "
                        f"remove-stderr\n{cell.source}\n{output.text.strip()[:500]}"
                    )
            elif output.output_type == "stream" and outputs and outputs[-1].get("name") == "stdout":
                outputs[-1].text += output.text
            elif WIDGET not in output.get("data", {}):
                outputs.append(output)
        cell.outputs = outputs
