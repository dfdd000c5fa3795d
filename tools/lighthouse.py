"""Lighthouse's scores for pages of the built site, as a phone on a slow line would load them.

python tools/lighthouse.py                                  the landing page, chapters 1, 6 and 8
python tools/lighthouse.py chapters/13-many-devices.html    this one

Medians of three runs, out of 100. The site comes compressed, as from GitHub Pages. What else runs
on the machine costs a page points.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from browser import chromium
from check_environment import ROOT

VERSION = "13.5.0"
SITE, TOOL = ROOT / "_build" / "html", ROOT / "_build" / "lighthouse"
PAGES = (
    "index.html",
    *(f"chapters/{name}.html" for name in ("01-kernel-regression", "06-multi-head-attention")),
    "chapters/08-three-transformers.html",
)
CATEGORIES = ("performance", "accessibility", "best-practices")
TEXT = {".html", ".css", ".js", ".json", ".svg", ".xml", ".txt"}


class Handler(SimpleHTTPRequestHandler):
    """Answers with compressed text."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if path.suffix not in TEXT or not path.is_file():
            return super().do_GET()
        body = gzip.compress(path.read_bytes())
        self.send_response(200)
        self.send_header("Content-Type", f"{self.guess_type(path)}; charset=utf-8")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return None


def report(address: str) -> dict[str, Any]:
    """One run."""
    command = ["node", "node_modules/lighthouse/cli/index.js", address, "--quiet", "--output=json"]
    command += [f"--only-categories={','.join(CATEGORIES)}"]
    command += ["--chrome-flags=--headless=new --no-sandbox"]
    chrome = {"CHROME_PATH": path} if (path := chromium()) else {}
    done = subprocess.run(
        command, cwd=TOOL, env=os.environ | chrome, capture_output=True, check=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(pages: Sequence[str]) -> None:
    """Print a line for each page: scores, kilobytes, other hosts that it asked, what costs it."""
    programs = str(Path(sys.executable).parent)  # node and npm lie beside Python
    os.environ["PATH"] = os.pathsep.join([programs, os.environ["PATH"]])
    if not (TOOL / "node_modules").is_dir():
        TOOL.mkdir(parents=True, exist_ok=True)
        (TOOL / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        words = ["npm", "install", "--no-audit", "--no-fund", f"lighthouse@{VERSION}"]
        subprocess.run(words, cwd=TOOL, check=True)
    handler = partial(Handler, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        host = f"127.0.0.1:{server.server_port}"
        for page in pages:
            runs = [report(f"http://{host}/{page}") for _ in range(3)]
            scores = [
                round(100 * statistics.median(run["categories"][name]["score"] for run in runs))
                for name in CATEGORIES
            ]
            audits = runs[0]["audits"]
            size = audits["total-byte-weight"]["numericValue"] / 1000
            asked = audits["network-requests"]["details"]["items"]
            hosts = {r["url"].split("/")[2] for r in asked if r["url"].startswith("http")} - {host}
            lost = [name for name, one in audits.items() if one["score"] == 0]
            print(f"{page:42}", *scores, f"{size:5.0f} kB", *sorted(hosts), *lost, flush=True)
        server.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:] or PAGES)
