"""The landing page's link for a class: a Jupyter server with nbgitpuller gives a student the book."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import Request, urlopen

import address
import pytest
from once import SECONDS
from sample import ROOT

TOKEN = "for-this-test"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A bare repository with one chapter, on the branch main."""
    work, bare = tmp_path / "work", tmp_path / "a.copy"
    (work / "chapters").mkdir(parents=True)
    (work / "chapters" / "01-kernel-regression.ipynb").write_text("{}", encoding="utf-8")
    who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*who, "commit", "-q", "-m", "one")):
        subprocess.run(["git", *words], cwd=work, check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(bare)], check=True)
    return bare


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a Jupyter server whose folder is a student's."""
    home = tmp_path / "student"
    home.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"]
    command += [
        f"--port={port}",
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={home}",
    ]
    own = {"HOME": str(home), "JUPYTER_CONFIG_DIR": str(home), "JUPYTER_DATA_DIR": str(home)}
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=home, env=os.environ | own, stdout=log, stderr=subprocess.STDOUT
        )
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        process.wait(timeout=SECONDS)


def ask(url: str) -> str:
    """The server's answer, as soon as it is up."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            request = Request(url, headers={"Authorization": f"token {TOKEN}"})
            with urlopen(request, timeout=SECONDS) as answer:
                return answer.read().decode()
        except URLError as problem:
            if time.monotonic() > end or not isinstance(problem.reason, ConnectionRefusedError):
                raise
            time.sleep(0.2)


def test_the_link_gives_a_student_the_chapter(
    repository: Path, server: str, tmp_path: Path
) -> None:
    copy = address.read_address("some-one/a.copy")
    page = address.filled((ROOT / "index.md").read_text("utf-8"), copy)
    link = re.findall(r"https://YOUR\.HUB/hub/user-redirect/(git-pull\?\S+)", page)[-1]
    asked = {key: values[0] for key, values in parse_qs(urlsplit(link).query).items()}
    assert asked["repo"] == "https://github.com/some-one/a.copy"
    asked["repo"] = repository.as_uri()  # the same link, to a repository of this machine
    assert "git-pull" in ask(f"{server}/git-pull?{urlencode(asked)}")
    pulled = ask(f"{server}/git-pull/api?{urlencode(asked | {'targetpath': 'a.copy'})}")
    assert '"phase": "finished"' in pulled, pulled
    opened = asked["urlpath"].removeprefix("lab/tree/")
    assert (tmp_path / "student" / opened).read_text(encoding="utf-8") == "{}"
