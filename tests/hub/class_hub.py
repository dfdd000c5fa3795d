"""A class's hub on the loopback: its files, its start and end, and the students who use it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import psutil
import requests
import websocket

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "hub/jupyterhub_config.py"
CHAPTER = "chapters/01-kernel-regression.ipynb"
STUDENTS, ASSISTANTS, LECTURERS = ("ada", "emmy"), ("grace",), ("hypatia",)
SECONDS = 300


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on, all of them different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def listens(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def password(name: str) -> str:
    return f"the loopback of {name}"


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@dataclass
class Book:
    """The repository that the class's link names: chapter 1 as it is here, and a lecturer's copy."""

    folder: Path

    def __post_init__(self) -> None:
        self.work, self.bare = self.folder / "work", self.folder / "attnbook"
        (self.work / "chapters").mkdir(parents=True)
        shutil.copy(ROOT / CHAPTER, self.work / CHAPTER)
        git(self.work, "init", "-q", "-b", "main")
        git(self.work, "add", "-A")
        git(self.work, "commit", "-q", "-m", "one")
        git(self.folder, "clone", "-q", "--bare", str(self.work), str(self.bare))
        git(self.work, "remote", "add", "origin", str(self.bare))

    def publish(self, file: str, text: str) -> None:
        """The lecturer changes a file during the term."""
        (self.work / file).write_text(text, "utf-8")
        git(self.work, "add", "-A")
        git(self.work, "commit", "-q", "-m", "more")
        git(self.work, "push", "-q", "origin", "main")


def closed_to_others(path: Path) -> Path | None:
    """The outermost folder above a path that other accounts cannot enter."""
    above = [folder for folder in (path, *path.parents) if not folder.stat().st_mode & 0o001]
    return above[-1] if above else None


def own_mounts(folder: Path) -> list[str]:
    """Commands for a view of the file system in which accounts can be made and leave no trace.

    /etc and /home are copies, and what the servers read can be entered where it lies.
    """
    commands = [f"mount --bind {folder}/etc /etc", f"mount --bind {folder}/home /home"]
    reads = {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), ROOT}
    for closed in {found for path in reads if (found := closed_to_others(path))}:
        inside = sorted(path for path in reads if path.is_relative_to(closed))
        keep = {path: folder / f"keep-{number}" for number, path in enumerate(inside)}
        commands += [f"mkdir {kept} && mount --bind {path} {kept}" for path, kept in keep.items()]
        commands += [f"mount -t tmpfs -o mode=755 tmpfs {closed}"]
        commands += [
            f"mkdir -p {path} && mount --bind {kept} {path}" for path, kept in keep.items()
        ]
    return commands


def with_own_mounts(folder: Path, *command: str) -> list[str]:
    """The command in that view: as root, with no other effect than on its own files."""
    script = " && ".join([*own_mounts(folder), "exec " + shlex.join(command)])
    return ["unshare", "--mount", "--propagation", "private", "--", "bash", "-c", script]


@functools.cache
def can_make_accounts(folder: Path) -> bool:
    """Whether accounts can be made: as root of a Linux that lets a process have its own mounts."""
    if sys.platform != "linux" or os.getuid() != 0 or closed_to_others(folder):
        return False
    if not all(map(shutil.which, ("unshare", "adduser"))):
        return False
    shutil.copytree("/etc", folder / "etc", symlinks=True)
    (folder / "home").mkdir()
    found = subprocess.run(with_own_mounts(folder, "true"), capture_output=True)
    for kept in folder.glob("keep-*"):
        kept.rmdir()
    return found.returncode == 0


@dataclass
class Hub:
    """A hub that runs: the class's files in a folder, and the processes."""

    folder: Path
    accounts: bool = field(init=False)

    def __post_init__(self) -> None:
        self.accounts = can_make_accounts(self.folder)
        self.homes = self.folder / "home"
        self.homes.mkdir(exist_ok=True)
        self.state = self.folder / "state"
        self.state.mkdir(mode=0o700)
        people = {"students": STUDENTS, "assistants": ASSISTANTS, "lecturers": LECTURERS}
        for file, names in people.items():
            (self.state / f"{file}.txt").write_text("\n".join(names), "utf-8")
        self.book = Book(self.folder / "www")
        self.ports = free_ports(3)
        self.url = f"http://127.0.0.1:{self.ports[0]}"
        self.log = self.folder / "hub.log"
        self.processes: list[psutil.Process] = []

    def environment(self) -> dict[str, str]:
        gitconfig = self.folder / "gitconfig"
        gitconfig.write_text("[safe]\n\tdirectory = *\n", "utf-8")
        mine = {name: os.environ[name] for name in ("PATH", "LANG", "HOME") if name in os.environ}
        return mine | {
            "ATTNBOOK_HUB": str(self.state),
            "CLASS_HUB_CONFIG": str(CONFIG),
            "CLASS_HUB_PORTS": " ".join(map(str, self.ports)),
            "CLASS_HUB_GIT": str(gitconfig),
            "CLASS_HUB_HOMES": "" if self.accounts else str(self.homes),
        }

    def start(self, python: str = sys.executable) -> None:
        settings = Path(__file__).with_name("class_hub_config.py")
        command = [python, "-m", "jupyterhub", "-f", str(settings)]
        if self.accounts:
            command = with_own_mounts(self.folder, *command)
        with self.log.open("w") as log:
            self.process = psutil.Popen(
                command, cwd=self.state, env=self.environment(), stdout=log, stderr=log
            )
        self.wait(lambda: self.answers("/hub/health"), "no answer of the hub")

    def answers(self, path: str) -> bool:
        try:
            return requests.get(self.url + path, timeout=SECONDS).ok
        except requests.ConnectionError:
            return False

    def wait(self, happened: Any, otherwise: str) -> None:
        end = time.monotonic() + SECONDS
        while not happened():
            ended = self.process.poll() is not None
            assert not ended and time.monotonic() < end, f"{otherwise}:\n{self.log.read_text()}"
            time.sleep(0.1)

    def everything(self) -> list[psutil.Process]:
        """Every process that the hub began, and those that they began; those of before as well."""
        if self.process.poll() is None:
            now = [self.process, *self.process.children(recursive=True)]
            self.processes += [one for one in now if one not in self.processes]
        return self.processes

    def stop(self) -> None:
        """End the hub as a system does, by one signal to one process."""
        self.everything()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(SECONDS)

    def kill(self) -> None:
        """End what is left."""
        for process in self.everything():
            if process.is_running():
                process.kill()

    def link(self, page: str) -> str:
        """The page's link for a class, to this hub, and to a repository of this machine."""
        link = re.findall(r"https://YOUR\.HUB(/hub/user-redirect/git-pull\?\S+)", page)[-1]
        asked = {key: values[0] for key, values in parse_qs(urlsplit(link).query).items()}
        asked["repo"] = self.book.bare.as_uri()
        return f"{urlsplit(link).path}?{urlencode(asked)}"


class Person:
    """Someone at a browser, who logs in."""

    def __init__(self, hub: Hub, name: str) -> None:
        self.hub, self.name = hub, name
        self.web = requests.Session()
        self.home = hub.homes / name

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.web.get(self.hub.url + path, timeout=SECONDS, **options)

    def log_in(self, with_password: str) -> bool:
        """Whether the hub lets the person in."""
        self.get("/hub/login")
        form = {"username": self.name, "password": with_password}
        form["_xsrf"] = self.xsrf("/hub/")
        address = f"{self.hub.url}/hub/login"
        # Where it leads to is the start of the server.
        answer = self.web.post(address, data=form, allow_redirects=False, timeout=SECONDS)
        return answer.status_code == 302 and "jupyterhub-hub-login" in {
            cookie.name for cookie in self.web.cookies
        }

    def xsrf(self, path: str) -> str:
        return self.web.cookies.get("_xsrf", path=path) or ""

    def ask(self, method: str, path: str, **options: Any) -> requests.Response:
        """A request as a page of the person's own server, or of the hub, makes it."""
        of_hub = path.startswith("/hub/")
        token = self.xsrf("/hub/" if of_hub else f"/user/{self.name}/")
        headers = {"X-XSRFToken": token, "Referer": f"{self.hub.url}/hub/home"}
        return self.web.request(
            method, self.hub.url + path, headers=headers, timeout=SECONDS, **options
        )

    def own(self, method: str, path: str, **options: Any) -> requests.Response:
        """A request to the person's own server."""
        return self.ask(method, f"/user/{self.name}/{path}", **options)

    def follow(self, link: str) -> str:
        """Click on the class's link until its page is there: the server starts in between."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            answer = self.get(link)
            if urlsplit(answer.url).path == f"/user/{self.name}/git-pull" and answer.ok:
                return answer.url
            if answer.status_code == 500:
                break
            time.sleep(0.2)
        raise AssertionError(f"{answer.status_code} {answer.url}\n{self.hub.log.read_text()}")

    def pull(self, link: str, **more: str) -> str:
        """What the link's page does: it asks for the pull and says how it goes."""
        asked = parse_qs(urlsplit(self.follow(link)).query)
        words = {key: values[0] for key, values in asked.items()} | {"targetpath": "attnbook"}
        words |= more | {"_xsrf": self.xsrf(f"/user/{self.name}/")}
        answer = self.own("GET", f"git-pull/api?{urlencode(words)}")
        assert '"phase": "finished"' in answer.text, answer.text
        return words["urlpath"].removeprefix("lab/tree/")

    @contextlib.contextmanager
    def kernel(self) -> Iterator[Kernel]:
        """A kernel beside the chapters, which ends with the block."""
        begun = self.own(
            "POST", "api/kernels", json={"name": "python3", "path": "attnbook/chapters"}
        )
        assert begun.status_code == 201, begun.text
        number = begun.json()["id"]
        address = self.hub.url.replace("http", "ws", 1)
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.web.cookies)
        channels = f"{address}/user/{self.name}/api/kernels/{number}/channels"
        channel = websocket.create_connection(channels, cookie=cookies, timeout=SECONDS)
        with contextlib.closing(channel):
            yield Kernel(channel)
        self.own("DELETE", f"api/kernels/{number}")

    def run(self, code: str) -> str:
        """What a kernel of its own prints."""
        with self.kernel() as kernel:
            return kernel.run(code)

    def token(self) -> str:
        """A token of the person's, as the page /hub/token gives it."""
        answer = self.ask("POST", f"/hub/api/users/{self.name}/tokens", json={"expires_in": 60})
        return str(answer.json()["token"])


@dataclass
class Kernel:
    """A notebook's kernel on a person's server, through the hub's proxy."""

    channel: websocket.WebSocket

    def run(self, code: str) -> str:
        """What the code prints; the name of its error where it has one."""
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": "execute_request",
            "version": "5.3",
            "username": "",
            "session": "tests",
        }
        content = {"code": code, "silent": False, "allow_stdin": False}
        request = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        self.channel.send(json.dumps(request | {"channel": "shell"}))
        said = ""
        ended: set[str] = set()
        while ended != {"execute_reply", "idle"}:
            message = json.loads(self.channel.recv())
            if message["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                said += message["content"]["text"]
            if message["msg_type"] == "error":
                said += message["content"]["ename"]
            now = {message["msg_type"], message["content"].get("execution_state")}
            ended |= now & {"execute_reply", "idle"}
        return said.strip()


def printed(cell: dict[str, Any]) -> str:
    """What a stored cell prints."""
    outputs: Iterable[dict[str, Any]] = cell.get("outputs", [])
    texts = [one["text"] for one in outputs if one.get("name") == "stdout"]
    return "".join(text if isinstance(text, str) else "".join(text) for text in texts).strip()
