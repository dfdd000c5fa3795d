"""The lists of a class: who is in them gets an account, and what cannot be a name is refused."""

from pathlib import Path
from typing import Any

import pytest
from class_hub import CONFIG
from traitlets.config import PyFileConfigLoader


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("ATTNBOOK_HUB", str(folder))
    return folder


def load() -> Any:
    return PyFileConfigLoader(str(CONFIG)).load_config()


def test_who_is_listed_may_come_in_and_nobody_else(state):
    (state / "students.txt").write_text("# Group 1\nAda \n\nemmy-2  # on Tuesdays\n", "utf-8")
    (state / "assistants.txt").write_text("grace\n", "utf-8")
    config = load()
    assert config.Authenticator.allowed_users == {"ada", "emmy-2", "grace"}
    assert config.Authenticator.admin_users == set()
    assert config.Authenticator.allow_all is False
    assert config.Authenticator.allow_existing_users is False
    assert config.FirstUseAuthenticator.create_users is False
    assert config.JupyterHub.load_groups == {"students": {"users": ["ada", "emmy-2"]}}
    (helpers,) = (r["users"] for r in config.JupyterHub.load_roles if r["name"] == "help")
    assert helpers == ["grace"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("root", "an account of this machine that the hub did not make"),
        ("daemon", "an account of this machine"),
        ("ada lovelace", "got 'ada lovelace', expected 2 to 31 of a-z"),
        *((line, "expected 2 to 31 of a-z") for line in ("../etc", "-rf", "9lives", "a", "zoë")),
        *((line, "expected 2 to 31 of a-z") for line in ("x" * 32, "ada,emmy")),
    ],
)
def test_what_cannot_be_a_name_is_refused_with_file_and_line(state, line, said):
    (state / "students.txt").write_text(f"emmy\n{line}\n", "utf-8")
    with pytest.raises(ValueError, match=said) as problem:
        load()
    assert str(problem.value).startswith(f"{state}/students.txt:2: ")


@pytest.mark.parametrize("text", [None, "", "# nobody yet\n"])
def test_a_class_of_nobody_is_an_error_and_no_open_door(state, text):
    if text is not None:
        (state / "students.txt").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r"students\.txt: got no (file|name), expected"):
        load()


def test_a_folder_that_others_can_look_into_is_refused(state):
    (state / "students.txt").write_text("ada\n", "utf-8")
    state.chmod(0o755)
    with pytest.raises(ValueError, match="got the mode 755, expected 700; do: chmod 700"):
        load()


def test_the_hub_listens_on_this_machine_alone(state):
    (state / "students.txt").write_text("ada\n", "utf-8")
    config = load()
    addresses = [config.JupyterHub.bind_url, config.ConfigurableHTTPProxy.api_url]
    assert [one.rpartition(":")[0] for one in addresses] == ["http://127.0.0.1"] * 2
    assert "hub_ip" not in config.JupyterHub
