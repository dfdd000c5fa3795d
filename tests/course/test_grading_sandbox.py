"""The sandbox: what it shows, which system calls it refuses, and what it says where it is missing."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest
import sandboxes

from attnbook_course.checks.grading import sandbox

ROOT = Path(__file__).resolve().parents[2]
ALLOW, REFUSE, ABSENT = 0x7FFF0000, 0x00050001, 0x00050026
THREAD = 0x10000


def outcome(rules: bytes, architecture: int, number: int, flags: int = 0) -> int:
    """What the kernel does with a system call under these rules."""
    fields = {0: number, 4: architecture, 16: flags}
    lines = list(struct.iter_unpack("=HBBI", rules))
    at, loaded = 0, 0
    while True:
        code, if_true, if_false, operand = lines[at]
        at += 1
        if code == 0x20:
            loaded = fields[operand]
        elif code == 0x06:
            return operand
        else:
            tests = {0x15: loaded == operand, 0x35: loaded >= operand, 0x45: bool(loaded & operand)}
            at += if_true if tests[code] else if_false


@pytest.mark.parametrize(
    ("machine", "number", "flags", "expected"),
    [
        *(("x86_64", number, 0, ALLOW) for number in (0, 1, 9, 41, 59, 62, 231)),
        *(("x86_64", number, 0, REFUSE) for number in (57, 58, 29, 319, 425, 0x40000000 + 1)),
        *(("x86_64", number, 0, REFUSE) for number in (165, 166, 155, 272, 308, 430, 442)),
        ("x86_64", 56, 0x01200011, REFUSE),
        ("x86_64", 56, 0x003D0F00 | THREAD, ALLOW),
        ("x86_64", 435, 0, ABSENT),
        *(("aarch64", number, 0, ALLOW) for number in (57, 58, 29, 63, 64)),
        *(("aarch64", number, 0, REFUSE) for number in (194, 279, 425, 39, 40, 41, 97, 268, 430)),
        ("aarch64", 220, 0x11, REFUSE),
        ("aarch64", 220, THREAD, ALLOW),
        ("aarch64", 435, 0, ABSENT),
    ],
)
def test_threads_may_be_made_and_processes_not(machine, number, flags, expected):
    rules = sandbox.system_call_filter(machine)
    own = sandbox.MACHINES[machine].architecture
    assert outcome(rules, own, number, flags) == expected
    assert outcome(rules, 0x40000003, number, flags) == REFUSE  # as a 32-bit program would call


def test_a_processor_that_is_not_known_has_no_filter():
    assert sandbox.system_call_filter("riscv64") is None


def test_what_is_shown():
    shown = sandbox.visible()
    assert sandbox.shown(Path(sandbox.__file__))
    for hidden in ("homework", "tests", "chapters", "tools", "_build", "pyproject.toml"):
        assert not sandbox.shown(ROOT / hidden)
    for path in shown:
        assert not ROOT.is_relative_to(path), path


LOOK = """
import ctypes, os, socket
import attnbook, numpy
seen = [*os.listdir("/"), *os.listdir("/tmp"), *os.listdir({root!r}), *os.environ]
print(*seen)
for path in ("/new", "/dev/shm/new", "/proc/self/clear_refs", {package!r} + "/new", "/usr/new", "/sys/new"):
    try:
        open(path, "w")
        print("WRITTEN", path)
    except OSError:
        pass
libc = ctypes.CDLL(None)
new_user, new_mount = 0x10000000, 0x20000
if libc.unshare(new_user | new_mount) == 0:
    print("UNSHARED")
if libc.mount(b"none", b"/tmp", b"tmpfs", 0, b"size=1g") == 0:
    print("MOUNTED")
print(open("/proc/1/environ").read().count("="), len([p for p in os.listdir("/proc") if p.isdigit()]))
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=2)
    print("CONNECTED")
except OSError as error:
    print(type(error).__name__)
"""


def test_inside_there_is_little(monkeypatch):
    import socket

    sandboxes.bubblewrap()
    monkeypatch.setenv("TOKEN_OF_THE_LECTURER", "hunter2")
    listener = socket.create_server(("127.0.0.1", 0))
    code = LOOK.format(
        root=str(ROOT), package=str(sandbox.package()), port=listener.getsockname()[1]
    )
    process = sandbox.started("bwrap", [sys.executable, "-P", "-c", code], "/")
    out, _ = process.communicate(timeout=60)
    listener.close()
    assert not {"WRITTEN", "UNSHARED", "MOUNTED"} & set(out.decode().split())
    seen, processes, network = out.decode().splitlines()
    for hidden in ("chapters", "homework", "tests", "etc/passwd", "TOKEN_OF_THE_LECTURER"):
        assert hidden not in seen.split()
    assert network == "ConnectionRefusedError"
    assert processes in ("1 2", "1 3", "0 2")


@pytest.fixture
def unprobed():
    cached = (sandbox.probed, sandbox._help, sandbox._closes_namespaces)
    for one in cached:
        one.cache_clear()
    yield
    for one in cached:
        one.cache_clear()


@pytest.fixture
def given(unprobed, monkeypatch, tmp_path):
    """A function that puts a script in the place of bubblewrap."""

    def put(script):
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}")
        (tmp_path / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    return put


@sandboxes.posix
@pytest.mark.usefixtures("unprobed")
def test_a_missing_sandbox_is_an_error_with_its_remedy(monkeypatch):
    monkeypatch.setattr(sandbox.shutil, "which", lambda _: None)
    for kind in ("auto", "bwrap"):
        with pytest.raises(sandbox.NoSandbox) as found:
            sandbox.probed(kind)
        assert "bwrap is not installed" in str(found.value)
        assert "apt install bubblewrap" in str(found.value)
        assert "With --sandbox none a student's code runs with your rights" in str(found.value)
    assert sandbox.probed("none") == "none"


@sandboxes.posix
def test_a_sandbox_that_does_not_work_says_what_to_do(given):
    given("echo 'setting up uid map: Permission denied' >&2\nexit 1\n")
    with pytest.raises(sandbox.NoSandbox) as found:
        sandbox.probed("auto")
    assert "does not work here (setting up uid map: Permission denied)" in str(found.value)
    assert "profile bwrap" in str(found.value)
    assert "apparmor" in str(found.value)


@pytest.mark.parametrize("options", ["--size", ""])
def test_an_older_bubblewrap_takes_what_it_knows(monkeypatch, options):
    monkeypatch.setattr(sandbox, "_help", lambda _: options)
    monkeypatch.setattr(sandbox, "_closes_namespaces", lambda _: bool(options))
    words = sandbox.command("bwrap", 3)
    for option in ("--size", "--disable-userns", "--unshare-user"):
        assert (option in words) == bool(options)
    assert words[-2:] == ["--seccomp", "3"]  # which alone forbids new namespaces and mounts


@sandboxes.posix
def test_a_sandbox_that_students_could_widen_is_refused(given, monkeypatch):
    given("")
    monkeypatch.setattr(sandbox, "system_call_filter", lambda: None)
    said = r"cannot forbid new namespaces \(it can from 0\.8\)"
    with pytest.raises(sandbox.NoSandbox, match=said):
        sandbox.probed("bwrap")


@sandboxes.posix
def test_a_bubblewrap_that_may_not_write_to_proc_goes_without(given):
    given("[ $1 = --help ] && { echo --disable-userns; exit; }\nexit 1\n")
    assert "--disable-userns" not in sandbox.command("bwrap", 3)


@pytest.mark.usefixtures("unprobed")
def test_elsewhere_than_on_linux_and_macos_it_says_so(monkeypatch):
    monkeypatch.setattr(sandbox.os, "name", "nt")
    with pytest.raises(sandbox.NoSandbox, match="grade in WSL or on a server"):
        sandbox.probed("none")


def test_importing_the_package_imports_no_grader():
    code = "import sys, attnbook_course.checks; print([m for m in sys.modules if 'grading' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
