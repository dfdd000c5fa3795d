"""Where a student's code runs: bubblewrap, no network, few files, and an empty /tmp of its own.

Visible, and only to be read, are the system's libraries, Python with its environment, and the
book's two packages. The environment's variables are cleared. The worker bounds its memory, files
and threads before it runs a line of the notebook, and Student ends it where it starts processes.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import site
import subprocess
import sys
from pathlib import Path
from typing import Literal

import attnbook
import attnbook_course

Kind = Literal["bwrap", "none"]
ROOM = 256 << 20  # bytes of files that a student may write, in /tmp
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/alternatives", "/etc/ld.so.cache")
MISSING = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap)"
FORBIDDEN = (
    "install bubblewrap 0.8 or newer, and let it make user namespaces. On Ubuntu 24.04 and later "
    "AppArmor forbids it: write to /etc/apparmor.d/bwrap the lines\n"
    "    abi <abi/4.0>,\n"
    "    include <tunables/global>\n"
    "    profile bwrap /usr/bin/bwrap flags=(unconfined) {\n"
    "      userns,\n"
    "    }\n"
    "  and run 'sudo systemctl reload apparmor'. In a container, allow user namespaces "
    "(Docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined)"
)


class NoSandbox(Exception):
    """The sandbox cannot be used; the text says why, and the remedy."""


def command(kind: Kind) -> list[str]:
    """What to write before the worker's own command; nothing without a sandbox."""
    if kind == "none":
        return []
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    words += ["--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"]
    words += ["--unshare-user", "--disable-userns"] if _closes_namespaces() else []
    words += ["--size", str(ROOM), "--tmpfs", "/tmp", "--dir", "/tmp/home"]
    for path in visible():
        if path.is_symlink() and str(path) in SYSTEM:  # as /lib to usr/lib
            words += ["--symlink", os.readlink(path), str(path)]
        else:
            words += ["--ro-bind", str(path), str(path)]
    for own in ("/", "/dev", "/proc"):
        words += ["--remount-ro", own]
    for name, value in environment("/tmp/home").items():
        words += ["--setenv", name, value]
    return [*words, "--chdir", "/tmp/home"]


def environment(home: str) -> dict[str, str]:
    """The variables of a student's process: none of the grader's own."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {
        **one,
        "HOME": home,
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(packages()[0].parent),
        "TMPDIR": home,
    }


def packages() -> list[Path]:
    """The folders of the book's two packages."""
    return [Path(str(one.__file__)).resolve().parent for one in (attnbook, attnbook_course)]


def visible() -> list[Path]:
    """What the sandbox shows, to be read only; a folder before what lies in it."""
    paths = {Path(p) for p in (*SYSTEM, sys.prefix, sys.base_prefix, *site.getsitepackages())}
    paths |= {Path(sys.executable).parent, Path(sys.executable).resolve().parent, *packages()}
    if site.ENABLE_USER_SITE:
        paths.add(Path(site.getusersitepackages()))
    outer: list[Path] = []
    for path in sorted(paths, key=lambda p: len(p.parts)):
        inside = any(path.is_relative_to(other) for other in outer if not other.is_symlink())
        if path.exists() and not inside:
            outer.append(path)
    return outer


def shown(path: Path) -> bool:
    """Whether the sandbox would show this file to a student."""
    return any(path.resolve().is_relative_to(p.resolve()) for p in visible())


def started(kind: Kind, words: list[str], folder: str) -> subprocess.Popen[bytes]:
    """A process with pipes for its input and output, in the sandbox or else in the folder."""
    return subprocess.Popen(
        [*command(kind), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=folder,
        # bubblewrap clears the worker's variables, but its own can be read in /proc/1/environ
        env={"PATH": os.environ.get("PATH", os.defpath)} if kind != "none" else environment(folder),
    )


@functools.cache
def probed(kind: Kind) -> Kind:
    """The kind of sandbox, if it works here.

    Raises:
        NoSandbox: it is missing or does not work, with the remedy.
    """
    if os.name != "posix":
        words = f"grading needs Linux, or macOS with --sandbox none; this is {platform.system()}"
        raise NoSandbox(f"{words}.\n  Do: grade in WSL or on a server.")
    if kind == "none":
        return kind
    if shutil.which("bwrap") is None:
        raise NoSandbox(_advice("bwrap is not installed", MISSING))
    tried = [*command("bwrap"), sys.executable, "-P", "-c", "import attnbook_course.checks"]
    done = subprocess.run(tried, capture_output=True, text=True, timeout=120)
    if done.returncode:
        said = next(iter(reversed(done.stderr.strip().splitlines())), "it ends without a word")
        raise NoSandbox(_advice(f"bwrap does not work here ({said})", FORBIDDEN))
    return kind


def _advice(problem: str, remedy: str) -> str:
    own = "With --sandbox none a student's code runs with your rights: only on a throwaway machine"
    return f"there is no sandbox: {problem}.\n  Do: {remedy}.\n  {own}."


@functools.cache
def _closes_namespaces() -> bool:
    """Whether bubblewrap can forbid further namespaces: not in a container without /proc/sys."""
    words = ["bwrap", "--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "true"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0
