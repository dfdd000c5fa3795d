"""Where a student's code runs: bubblewrap, no network, few files, bounded memory and output.

Visible, and only to be read, are the system's libraries, Python with its environment, and the
package attnbook. The environment's variables are cleared. A filter of system calls forbids other
processes, so that a fork bomb has nothing to multiply, and other mounts and namespaces, so that
/tmp, the sandbox's own, is all that can be written. Threads and files are counted: see watch.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import site
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import attnbook

Kind = Literal["auto", "bwrap", "none"]
ROOM = 256 << 20  # bytes of files that a student may write, in /tmp
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/alternatives", "/etc/ld.so.cache")
REMEDIES = {
    "missing": "install bubblewrap (apt install bubblewrap, dnf install bubblewrap)",
    "open": "install bubblewrap 0.8 or newer, or grade on a machine of x86_64 or aarch64",
    "forbidden": (
        "let bubblewrap make user namespaces. On Ubuntu 24.04 and later AppArmor forbids it: write "
        "to /etc/apparmor.d/bwrap the lines\n"
        "    abi <abi/4.0>,\n"
        "    include <tunables/global>\n"
        "    profile bwrap /usr/bin/bwrap flags=(unconfined) {\n"
        "      userns,\n"
        "    }\n"
        "  and run 'sudo systemctl reload apparmor'. In a container, allow user namespaces "
        "(Docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined)"
    ),
}


class NoSandbox(Exception):
    """The sandbox cannot be used; the text says why, and the remedy."""


@dataclass(frozen=True)
class Machine:
    """The numbers of a processor's system calls that the filter names."""

    architecture: int
    without: tuple[int, ...]  # processes, mounts, and memory that no limit counts
    clone: int
    clone3: int


# open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr; io_uring_setup, and
# memfd_secret: every processor has the same numbers for these
NEWER = (*range(428, 434), 442, 425, 447)
MACHINES = {
    # fork, vfork, shmget, semget, msgget, pivot_root, mount, umount2, unshare, setns, memfd_create
    "x86_64": Machine(
        0xC000003E, (57, 58, 29, 64, 68, 155, 165, 166, 272, 308, 319, *NEWER), 56, 435
    ),
    # the same without fork and vfork, which it has not
    "aarch64": Machine(0xC00000B7, (194, 190, 186, 41, 40, 39, 97, 268, 279, *NEWER), 220, 435),
}


def command(kind: Kind, filter_from: int | None = None) -> list[str]:
    """What to write before the worker's own command; nothing without a sandbox.

    Args:
        kind: "none" for no sandbox.
        filter_from: the file descriptor from which bubblewrap reads the filter of system calls.
    """
    if kind == "none":
        return []
    words = [
        shutil.which("bwrap") or "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
    ]
    words += ["--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"]
    if _closes_namespaces(words[0]):
        words += ["--unshare-user", "--disable-userns"]
    words += ["--size", str(ROOM)] if "--size" in _help(words[0]) else []
    words += ["--tmpfs", "/tmp", "--dir", "/tmp/home"]
    for path in visible():
        if path.is_symlink() and str(path) in SYSTEM:  # as /lib to usr/lib
            words += ["--symlink", os.readlink(path), str(path)]
        else:
            words += ["--ro-bind", str(path), str(path)]
    for own in ("/", "/dev", "/proc"):  # in /proc lies the account of a process's memory
        words += ["--remount-ro", own]
    words += ["--chdir", "/tmp/home"]
    for name, value in environment("/tmp/home").items():
        words += ["--setenv", name, value]
    return [*words, "--seccomp", str(filter_from)] if filter_from is not None else words


def environment(home: str) -> dict[str, str]:
    """The variables of a student's process: none of the grader's own."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {
        **one,
        "HOME": home,
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(package().parent),
        "TMPDIR": "/tmp" if home == "/tmp/home" else home,
    }


def package() -> Path:
    """The folder of the package attnbook."""
    return Path(attnbook.__file__).resolve().parent


def visible() -> list[Path]:
    """What the sandbox shows, to be read only; a folder before what lies in it."""
    paths = {Path(p) for p in (*SYSTEM, sys.prefix, sys.base_prefix, *site.getsitepackages())}
    paths |= {Path(sys.executable).parent, Path(sys.executable).resolve().parent, package()}
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


def system_call_filter(machine: str = "") -> bytes | None:
    """No new process, in the kernel's own language; None for a processor that is not known here.

    A call of another architecture is refused, clone is allowed for threads, and clone3, whose
    flags no filter can read, does not exist: the C library then takes clone.
    """
    known = MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    allow, refuse, absent = 0x7FFF0000, 0x00050001, 0x00050026  # the last two: EPERM, ENOSYS
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    lines = [(load, 0, 0, 4), (equal, 1, 0, known.architecture), (give, 0, 0, refuse)]
    lines += [(load, 0, 0, 0), (at_least, 0, 1, 0x40000000), (give, 0, 0, refuse)]
    for number in known.without:
        lines += [(equal, 0, 1, number), (give, 0, 0, refuse)]
    lines += [(equal, 0, 1, known.clone3), (give, 0, 0, absent)]
    lines += [(equal, 0, 3, known.clone), (load, 0, 0, 16)]
    lines += [(any_bit, 1, 0, 0x10000), (give, 0, 0, refuse), (give, 0, 0, allow)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def started(kind: Kind, words: list[str], folder: str) -> subprocess.Popen[bytes]:
    """A process with pipes for its input and output, in the sandbox or else in the folder."""
    rules = system_call_filter() if kind != "none" else None
    read_from: int | None = None
    handed: tuple[int, ...] = ()
    if rules is not None:
        read_from, write_to = os.pipe()
        os.write(write_to, rules)  # shorter than any pipe is wide
        os.close(write_to)
        handed = (read_from,)
    try:
        return subprocess.Popen(
            [*command(kind, read_from), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=handed,
            cwd=folder,
            # bubblewrap clears the worker's variables, but its own can be read in /proc/1/environ
            env={"PATH": os.defpath} if kind != "none" else environment(folder),
        )
    finally:
        if read_from is not None:
            os.close(read_from)


@functools.cache
def probed(kind: Kind) -> Kind:
    """The kind of sandbox to use: "bwrap" if it works here, "none" only if that is asked for.

    Raises:
        NoSandbox: it is missing or does not work, with the remedy.
    """
    if os.name != "posix":
        words = f"grading needs Linux, or macOS with --sandbox none; this is {platform.system()}"
        raise NoSandbox(f"{words}.\n  Do: grade in WSL or on a server.")
    if kind == "none":
        return kind
    if shutil.which("bwrap") is None:
        raise NoSandbox(_advice("bwrap is not installed", REMEDIES["missing"]))
    if system_call_filter() is None and not _closes_namespaces(shutil.which("bwrap") or ""):
        words = "bwrap cannot forbid new namespaces (it can from 0.8), and the grader has no filter"
        raise NoSandbox(_advice(f"{words} for {platform.machine()}", REMEDIES["open"]))
    done = subprocess.run(
        [*command("bwrap"), sys.executable, "-P", "-c", "import attnbook_course.checks"],
        capture_output=True,
        text=True,
        env={"PATH": os.defpath},
        timeout=120,
    )
    if done.returncode:
        said = next(iter(reversed(done.stderr.strip().splitlines())), "it ends without a word")
        raise NoSandbox(_advice(f"bwrap does not work here ({said})", REMEDIES["forbidden"]))
    return "bwrap"


def _advice(problem: str, remedy: str) -> str:
    own = "With --sandbox none a student's code runs with your rights: only on a throwaway machine"
    return f"there is no sandbox: {problem}.\n  Do: {remedy}.\n  {own}."


@functools.cache
def _closes_namespaces(bwrap: str) -> bool:
    """Whether it can forbid further ones: from 0.8, and where /proc/sys can be written.

    In a container it often cannot be. The filter of system calls forbids them as well.
    """
    if "--disable-userns" not in _help(bwrap):
        return False
    words = [bwrap, "--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "true"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@functools.cache
def _help(bwrap: str) -> str:
    """What it says of its options: --size came with 0.8."""
    done = subprocess.run([bwrap, "--help"], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
