"""A class's hub on the loopback, as hub/jupyterhub_config.py makes it: two students use it.

Where the tests run as root of a Linux, each student has an account, made in a view of the file
system that ends with the hub. Elsewhere all servers run under one account, and what only accounts
can keep apart is skipped.
"""

import json
import re
import sqlite3
import stat
import sys
import time

import nbformat
import psutil
import pytest
import requests
import yaml
from class_hub import CHAPTER, ROOT, SECONDS, Hub, Person, listens, password, printed

FIRST_CELLS = 8  # two of them print
SECRETS = ("passwords.dbm", "jupyterhub.sqlite", "cookie_secret", "proxy.pid", "students.txt")
NO_PROOF = ("_xsrf", "jupyterhub-session-id")  # cookies that let nobody in


def test_a_stranger_and_a_short_password_are_refused(hub):
    assert not Person(hub, "mallory").log_in("a password that is long enough")
    assert not Person(hub, "root").log_in("a password that is long enough")
    assert not Person(hub, "hypatia").log_in("short")
    assert not (hub.homes / "mallory").exists()


def test_a_wrong_password_is_refused(hub, student):
    """The first log-in has set it."""
    for wrong in ("", "wrong", password("other"), password(student.name) + " "):
        intruder = Person(hub, student.name)
        assert not intruder.log_in(wrong)
        assert intruder.get(f"/user/{student.name}/api/contents").status_code == 403
    assert Person(hub, student.name).log_in(password(student.name))


def test_the_link_opens_the_chapter(student, link):
    opened = student.pull(link)
    assert opened == f"attnbook/{CHAPTER}"
    notebook = student.own("GET", f"api/contents/{opened}").json()
    published = nbformat.read(student.hub.book.work / CHAPTER, 4)["cells"]
    found = [cell["source"] for cell in notebook["content"]["cells"]]
    assert found == [cell["source"] for cell in published]
    assert student.get(f"/user/{student.name}/lab/tree/{opened}").ok
    assert (student.home / opened).is_file()


def test_the_first_cells_print_what_the_chapter_prints(student, link):
    opened = student.pull(link)
    cells = student.own("GET", f"api/contents/{opened}").json()["content"]["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"][:FIRST_CELLS]
    with student.kernel() as kernel:
        assert [kernel.run(cell["source"]) for cell in code] == list(map(printed, code))
    assert len([cell for cell in code if printed(cell)]) == 3


def test_the_link_brings_changes_and_keeps_the_students_work(hub, student, link):
    """The student ran all cells and wrote into the last one; the lecturer mends, adds and removes."""
    opened = student.pull(link)
    contents = f"api/contents/{opened}"
    notebook = student.own("GET", contents).json()["content"]
    for count, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] == "code":
            said = [{"output_type": "stream", "name": "stdout", "text": f"run {count}\n"}]
            cell |= {"execution_count": count, "outputs": said}
    notebook["cells"][-1]["source"] += f"\nnotes of {student.name}"
    saved = student.own("PUT", contents, json={"type": "notebook", "content": notebook})
    assert saved.ok, saved.text
    changed = nbformat.read(hub.book.work / CHAPTER, 4)
    first, *_, removed, last = changed["cells"]
    first["source"] = f"# Kernel regression\nmended after {student.name}'s lecture"
    last["source"] = "the lecturer's end"
    added = nbformat.v4.new_markdown_cell(f"added after {student.name}'s lecture")
    changed["cells"].insert(3, added)
    changed["cells"].remove(removed)
    hub.book.publish(CHAPTER, nbformat.writes(changed) + "\n")
    student.pull(link)
    merged = student.own("GET", contents).json()["content"]["cells"]
    sources = "\n".join(cell["source"] for cell in merged)
    for kept in ("notes of", "mended after", "added after"):
        assert f"{kept} {student.name}" in sources
    assert merged[1]["outputs"] == notebook["cells"][1]["outputs"] != []


def test_a_renamed_notebook_comes_back_fresh(hub, student, link):
    """The student's own stays beside it, under its new name."""
    opened = student.pull(link)
    (student.home / opened).write_text("broken", "utf-8")
    aside = opened.replace("01-", "my-01-")
    renamed = student.own("PATCH", f"api/contents/{opened}", json={"path": aside})
    assert renamed.ok, renamed.text
    student.pull(link)
    assert (student.home / opened).read_bytes() == (hub.book.work / CHAPTER).read_bytes()
    assert (student.home / aside).read_text("utf-8") == "broken"


def test_backup_keeps_the_folder_and_begins_anew(student, link):
    opened = student.pull(link)
    (student.home / opened).write_text("{", "utf-8")
    student.pull(link, backup="true")
    (kept,) = student.home.glob("attnbook_backup_*")
    assert (kept / CHAPTER).read_text("utf-8") == "{"
    assert json.loads((student.home / opened).read_text("utf-8"))["cells"]


NOTEBOOK = f"api/contents/attnbook/{CHAPTER}"
OF_A_SERVER = [
    f"GET {NOTEBOOK}",
    f"DELETE {NOTEBOOK}",
    "PUT api/contents/attnbook/planted.txt",
    "GET api/kernels",
    "POST api/kernels",
    "POST api/terminals",
    "POST api/shutdown",
    "GET git-pull",
    "GET lab",
]


@pytest.mark.parametrize("asked", OF_A_SERVER)
def test_a_students_server_is_closed_to_the_other(student, other, asked):
    """Through the hub, and at the server's own port; with cookies, and with a token."""
    method, path = asked.split()
    plant = {"type": "file", "format": "text", "content": "planted"}
    address = f"/user/{other.name}/{path}"
    answer = student.ask(method, address, json=plant if method == "PUT" else None)
    assert answer.status_code == 403, answer.text
    bearer = {"Authorization": f"token {student.token()}"}
    direct = other_server(student.hub, other.name)
    for host in (student.hub.url, direct):
        answer = requests.request(method, host + address, headers=bearer, timeout=60)
        assert answer.status_code == 403, answer.text
        answer = requests.request(method, host + address, allow_redirects=False, timeout=60)
        assert answer.status_code in (302, 403), answer.text
    assert not (other.home / "attnbook/planted.txt").exists()


def other_server(hub: Hub, name: str) -> str:
    """The address at which a student's server itself listens, past the proxy."""
    with sqlite3.connect(f"file:{hub.state}/jupyterhub.sqlite?mode=ro", uri=True) as state:
        row = state.execute("SELECT port FROM servers WHERE base_url = ?", (f"/user/{name}/",))
        ((port,),) = row.fetchall()
    return f"http://127.0.0.1:{port}"


OF_THE_HUB = [
    "GET users",
    "GET users/{other}",
    "DELETE users/{other}",
    "PATCH users/{other}",
    "DELETE users/{other}/server",
    "POST users/{other}/server",
    "GET users/{other}/tokens",
    "POST users/{other}/tokens",
    "POST users/mallory",
    "GET services",
    "GET proxy",
    "POST shutdown",
]


@pytest.mark.parametrize("asked", OF_THE_HUB)
def test_a_student_rules_nothing_at_the_hub(student, other, asked):
    method, path = asked.split()
    answer = student.ask(method, f"/hub/api/{path.format(other=other.name)}", json={})
    assert answer.status_code in (403, 404), answer.text


def test_the_proxy_takes_no_orders_from_a_student(student):
    routes = f"http://127.0.0.1:{student.hub.ports[2]}/api/routes"
    code = f"import requests; print(requests.get('{routes}').status_code)"
    assert student.run(code) == "403"


def test_accounts_keep_files_and_processes_apart(student, other):
    """What a student's own code tries on the machine itself."""
    hub = student.hub
    if not hub.accounts:
        pytest.skip("no accounts can be made here: not root, or without mounts of one's own")
    server = server_of(hub, other)
    tries = [
        f"(os.listdir, ('/home/{other.name}',))",
        f"(Path.read_text, (Path('/home/{other.name}/attnbook/{CHAPTER}'),))",
        f"(Path.write_text, (Path('/home/{other.name}/planted.txt'), 'planted'))",
        f"(os.kill, ({server.pid}, 15))",
        f"(os.kill, ({hub.process.pid}, 15))",
        f"(Path.read_bytes, (Path('/proc/{server.pid}/environ'),))",
        f"(os.listdir, ('/proc/{server.pid}/fd',))",
        f"(Path.read_bytes, (Path('/proc/{hub.process.pid}/environ'),))",
        *(f"(Path.read_bytes, (Path('{hub.state}/{name}'),))" for name in SECRETS),
        "(os.setuid, (0,))",
        "(Path.write_text, (Path('/proc/self/oom_score_adj'), '-1000'))",
    ]
    code = (
        "import os\nfrom pathlib import Path\n"
        f"for action, arguments in [{', '.join(tries)}]:\n"
        "    try:\n        print('done', action.__name__, arguments, action(*arguments))\n"
        "    except PermissionError:\n        pass\n"
        "print(os.getuid() != 0)"
    )
    assert student.run(code) == "True"
    assert stat.S_IMODE(student.home.stat().st_mode) == 0o700
    assert server.is_running()


def server_of(hub: Hub, person: Person) -> psutil.Process:
    """The process of a person's server."""
    found = [
        process
        for process in hub.everything()
        if "jupyterhub.singleuser" in process.cmdline()
        and process.environ()["JUPYTERHUB_USER"] == person.name
    ]
    (server,) = found
    return server


def test_no_secret_is_in_the_log_or_in_a_students_environment(hub, students):
    secrets = [password(name) for name in students]
    for person in students.values():
        secrets += [cookie.value for cookie in person.web.cookies if cookie.name not in NO_PROOF]
        secrets += [person.token()]
        secrets += [server_of(hub, person).environ()["JUPYTERHUB_API_TOKEN"]]
        seen = person.run("import os; print('\\n'.join(os.environ))").split()
        proofs = {name for name in seen if re.search("TOKEN|KEY|SECRET", name)}
        assert proofs == {"JPY_API_TOKEN", "JUPYTERHUB_API_TOKEN"}
    secrets += [(hub.state / "cookie_secret").read_text("utf-8").strip()]
    log = hub.log.read_text("utf-8")
    assert "Creating user" in log or not hub.accounts
    assert [secret for secret in secrets if secret.strip('"') in log] == []


def test_scripts_of_a_page_cannot_read_what_proves_a_log_in(student):
    for cookie in student.web.cookies:
        hidden = cookie.has_nonstandard_attr("HttpOnly")
        assert hidden or cookie.name in NO_PROOF, cookie.name
    cookies = {cookie.name: cookie.value for cookie in student.web.cookies}
    no_proof = {name: value for name, value in cookies.items() if name in NO_PROOF}
    assert set(no_proof) == set(NO_PROOF)
    files = f"{student.hub.url}/user/{student.name}/api/contents"
    assert requests.get(files, cookies=no_proof, timeout=60).status_code == 403


def test_the_hubs_files_are_its_own(hub):
    for path in [hub.state, hub.state / "cookie_secret", hub.state / "passwords.dbm"]:
        found = [path, *path.parent.glob(path.name + "*")]
        assert [one for one in found if one.exists() and one.stat().st_mode & 0o077] == []


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_an_array_beyond_the_limit_is_an_error_and_no_dead_kernel(student):
    with student.kernel() as kernel:
        error = kernel.run("import numpy as np; array = np.zeros(5 * 2**30 // 8)")
        assert error.endswith("MemoryError")
        assert kernel.run("print(np.zeros(2**20).sum())") == "0.0"


def test_an_assistant_helps_students_and_rules_nobody(hub, students):
    """Also with a token of its own scopes, which ends."""
    grace = Person(hub, "grace")
    assert grace.log_in(password("grace"))
    asked = {"expires_in": 3600, "scopes": ["list:users!group=students", "access:servers!user=ada"]}
    made = grace.ask("POST", "/hub/api/users/grace/tokens", json=asked).json()
    assert made["expires_at"]
    bearer = {"Authorization": f"token {made['token']}"}

    def status(method: str, path: str) -> int:
        return requests.request(method, hub.url + path, headers=bearer, timeout=60).status_code

    listed = requests.get(f"{hub.url}/hub/api/users", headers=bearer, timeout=60).json()
    assert {user["name"] for user in listed} == set(students)
    assert status("GET", "/user/ada/api/contents") == 200
    assert status("GET", "/user/emmy/api/contents") == 403
    assert status("DELETE", "/hub/api/users/ada/server") == 403
    scopes = grace.ask("GET", "/hub/api/user").json()["scopes"]
    assert {"servers!group=students", "access:servers!user=emmy"} <= set(scopes)
    refused = ["DELETE users/ada", "PATCH users/grace", "POST users/mallory"]
    for asked in [*refused, "POST users/hypatia/server", "POST users/hypatia/tokens"]:
        method, path = asked.split()
        assert status(method, f"/hub/api/{path}") in (403, 404), path
        assert grace.ask(method, f"/hub/api/{path}", json={}).status_code in (403, 404), path


def test_who_forgot_a_password_sets_a_new_one(hub):
    """The lecturer removes the name and adds it again; the account and its files stay."""
    hypatia, grace = Person(hub, "hypatia"), Person(hub, "grace")
    assert hypatia.log_in(password("hypatia"))
    assert grace.log_in(password("grace"))
    assert hypatia.ask("DELETE", "/hub/api/users/grace").status_code == 204
    assert not Person(hub, "grace").log_in(password("grace"))
    assert hypatia.ask("POST", "/hub/api/users/grace").status_code == 201
    assert Person(hub, "grace").log_in("a new password of grace")
    assert not Person(hub, "grace").log_in(password("grace"))


def test_the_users_image_has_what_the_hub_asks_of_it():
    listed = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    names = {re.split("[=<>]", entry)[0] for entry in listed if isinstance(entry, str)}
    assert {"nbgitpuller", "jupyterhub", "jupyterlab", "ipykernel"} <= names


def test_nothing_is_left_when_the_hub_ends(hub, students):
    """The last test: one signal to the hub ends servers and kernels, and frees every port."""
    begun = students["ada"].own("POST", "api/kernels", json={"name": "python3"})
    assert begun.status_code == 201
    before = hub.everything()
    commands = [" ".join(process.cmdline()) for process in before if process.is_running()]
    names = ("ipykernel_launcher", "jupyterhub.singleuser", "configurable-http-proxy", "culler")
    for name in names:
        assert any(name in command for command in commands), name
    servers = [int(other_server(hub, name).rpartition(":")[2]) for name in students]
    hub.stop()
    end = time.monotonic() + SECONDS

    def left() -> list[psutil.Process]:
        return [one for one in before if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]

    while left() and time.monotonic() < end:
        time.sleep(0.1)
    assert left() == []
    assert [port for port in [*hub.ports, *servers] if listens(port)] == []
    assert "Traceback" not in hub.log.read_text("utf-8")
