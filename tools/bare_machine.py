"""The README's commands on a machine that has seen nothing: Debian with Python, make and git alone.

python3 tools/bare_machine.py                    make book, again, without a network; make lab
python3 tools/bare_machine.py "make test"        these commands instead, one after the other
BARE=/a/folder python3 tools/bare_machine.py     keeps root, home and clone there

A fresh clone of the last commit, an empty home, no cache, no model, no browser, no node. Only where
packages come from is taken over: settings of pip and npm, certificates, name servers. Needs Linux
and root; mmdebstrap makes the root and bubblewrap enters it (apt-get install them).

Only the standard library: it runs before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from check_environment import ROOT

TOOLS = ("mmdebstrap", "bwrap")
PACKAGES = "python3,python3-venv,make,git,ca-certificates"
SETTINGS = re.compile(
    r"(PIP_|UV_)[A-Z_]+|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS|\w+_proxy|\w+_PROXY"
)
TAKEN = "~/.config/pip", "~/.npmrc", "/etc/pip.conf", "/etc/ssl/certs", "/etc/resolv.conf"
FILES = (*TAKEN, "/etc/hosts")  # or localhost has no address
PAGES = ("README.md", "index.md", "CONTRIBUTING.md")  # that promise the minutes of a first build
AGAIN = 20  # seconds of a make book where nothing changed
# The site as a reader's browser gets it: pages with their outputs, a figure, a deck, a style sheet.
# And the chapters as JupyterLab lists them: notebooks, and no sources.
OPEN = """
import json, re, subprocess, time, urllib.request
def get(path, port=8000):
    return urllib.request.urlopen(f"http://localhost:{port}/{path}").read().decode("utf-8")
def started(*command, path, port):
    process = subprocess.Popen(command)
    for attempt in range(300):
        try:
            get(path, port)
            return process
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{command} does not answer at port {port}")
server = started("make", "serve", path="index.html", port=8000)
for page, part in {
    "index.html": "attnbook-live",
    "chapters/01-kernel-regression.html": "cell_output",
    "appendices/asides.html": "cell_output",
    "appendices/capstones.html": "cell_output",
    "lectures/01a-a-weighted-average.html": "<section",
}.items():
    assert part in get(page), f"{page} has no {part}"
for sheet in re.findall(r'href="(_static/[^"?]+[.]css)', get("index.html")):
    assert get(sheet)
options = "--no-browser --allow-root --port=8888 --IdentityProvider.token="
lab = started("make", "lab", f"LAB={options}", path="api/contents/chapters", port=8888)
listed = [one["name"] for one in json.loads(get("api/contents/chapters", 8888))["content"]]
assert len(listed) > 9 and all(name.endswith(".ipynb") for name in listed), listed
for process in (server, lab):
    process.terminate()
print("The site answers, and its pages have their outputs; JupyterLab lists the chapters.")
"""


class Machine:
    """A Debian root, and a clone of the book in it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.home, self.book = folder / "root", folder / "home", folder / "book"
        self.logs = folder / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        if not (self.root / "usr/bin/make").exists():
            make = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}"]
            subprocess.run([*make, release(), self.root, *sources()], check=True)
        for folder in (self.home, self.book, self.logs):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        subprocess.run(["git", "clone", "--quiet", ROOT, self.book], check=True)

    def run(self, command: str, *, network: bool = True) -> float:
        """Run a command in the clone; its seconds. What failed ends the program with its words."""
        words: list[str | Path] = ["bwrap", "--bind", self.root, "/", "--tmpfs", "/tmp"]
        words += ["--proc", "/proc", "--dev", "/dev"]
        words += ["--bind", self.home, "/root", "--bind", self.book, "/book"]
        for file in map(Path, FILES):
            if file.expanduser().exists():
                there = Path("/root", *file.parts[1:]) if file.parts[0] == "~" else file
                words += ["--ro-bind", file.expanduser(), there]
        for folder in os.environ.get("PIP_FIND_LINKS", "").split():
            words += ["--ro-bind-try", folder, folder]
        words += ["--unshare-pid", "--die-with-parent", "--chdir", "/book", "--clearenv"]
        words += [] if network else ["--unshare-net"]
        kept = {name: value for name, value in os.environ.items() if SETTINGS.fullmatch(name)}
        kept |= {"HOME": "/root", "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        for name, value in kept.items():
            words += ["--setenv", name, value]
        log = self.logs / f"{len(list(self.logs.iterdir()))}.log"
        began = time.monotonic()
        with log.open("w", encoding="utf-8") as to:
            done = subprocess.run(
                [*map(str, words), "bash", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=to,
                stderr=subprocess.STDOUT,
            )
        seconds = time.monotonic() - began
        said = log.read_text("utf-8", "replace")
        where = "" if network else ", without a network"
        print(f"    {seconds:4.0f} s  {command.strip().splitlines()[0][:60]}{where}", flush=True)
        if done.returncode:
            sys.exit(f"{said[-4000:]}\nOn a bare machine: exit {done.returncode} of {command}")
        return seconds


def release() -> str:
    """The name of this Debian's release."""
    (name,) = re.findall(r"VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text("utf-8"))
    return str(name)


def sources() -> list[str]:
    """Where this Debian's packages come from."""
    places = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*.sources")]
    return [str(place) for place in places if place.is_file() and place.stat().st_size]


def promised(text: str) -> float:
    """The seconds that a page promises: "1.5 minutes on a fresh machine"."""
    (minutes,) = re.findall(r"([\d.]+) minutes on a fresh machine", " ".join(text.split()))
    return 60 * float(minutes)


def check_promise(seconds: float) -> None:
    """What the pages say of the first make book is what it took here, within a factor of two."""
    for page in PAGES:
        said = promised((ROOT / page).read_text("utf-8"))
        if not said / 2 <= seconds <= said * 2:
            sys.exit(
                f"{page} promises {said:.0f} s for the first make book; here it was {seconds:.0f}"
            )


def readme(machine: Machine) -> None:
    """The README's commands as a newcomer types them."""
    first = machine.run("make book")
    check_promise(first)
    if (models := machine.home / ".cache" / "attnbook").exists():
        sys.exit(f"make book has fetched models: {', '.join(map(str, models.iterdir()))}")
    again = machine.run("make book", network=False)
    if again > 2 * AGAIN:
        sys.exit(f"make book takes {again:.0f} s where nothing changed, not {AGAIN}")
    machine.run("make clean", network=False)
    machine.run("make book", network=False)
    machine.run("make env-lab")
    machine.run(f"python3 - <<'END'{OPEN}END", network=False)


def main(commands: list[str]) -> None:
    """The command."""
    if sys.platform != "linux" or os.geteuid() or not all(map(shutil.which, TOOLS)):
        sys.exit(f"A bare machine is made on Debian, by root, with {' and '.join(TOOLS)}.")
    with tempfile.TemporaryDirectory(prefix="bare-", ignore_cleanup_errors=True) as temporary:
        machine = Machine(Path(os.environ.get("BARE", temporary)))
        if not commands:
            readme(machine)
        for command in commands:
            machine.run(command)


if __name__ == "__main__":
    main(sys.argv[1:])
