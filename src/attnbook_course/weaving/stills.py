"""Pictures of the live figures in notebooks, for readers whose programs run no script of theirs.

GitHub's preview runs none, nor does JupyterLab before a notebook is trusted. The picture stands in
the figure's output; the script takes it away when the figure itself is drawn.
"""

import re
from base64 import b64encode
from pathlib import Path

from nbformat import NotebookNode

PLACE = re.compile(
    r'<div id="(?P<name>[\w-]+)" class="attnbook-live".*?<strong>(?P<title>.*?)</strong>.*?'
    r'<div class="attnbook-still">',
    re.DOTALL,
)
PICTURE = re.compile(r'<img class="attnbook-picture".*?</p>', re.DOTALL)
HINT = "A picture of the live figure: run this cell, and it moves."


def put_stills(notebook: NotebookNode, folder: Path) -> None:
    """Give every live figure among the outputs its picture of today."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            html = output.get("data", {}).get("text/html", "")
            if PLACE.search(html):
                output.data["text/html"] = PLACE.sub(
                    lambda found: found[0] + _picture(found, folder),
                    without_still(html),
                )


def alternative(title: str) -> str:
    """What a picture says to a reader who does not see it."""
    return f"{title}: the figure before anything is moved."


def without_still(html: str) -> str:
    """An output as the figure itself wrote it."""
    return PICTURE.sub("", html)


def _picture(found: re.Match[str], folder: Path) -> str:
    file = folder / f"{found['name']}.webp"
    if not file.is_file():
        return ""
    data = b64encode(file.read_bytes()).decode()
    return (
        f'<img class="attnbook-picture" width="700" src="data:image/webp;base64,{data}" '
        f'alt="{alternative(found["title"])}"><p>{HINT}</p>'
    )
