"""What a hub of hundreds and the page about hubs say is true of the files and agrees with them."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from class_hub import ROOT

VALUES = ROOT / "hub/z2jh.yaml"
WORKFLOW = ROOT / ".github/workflows/hub.yml"
PAGE = ROOT / "appendices/hub.md"
CONFIG = ROOT / "hub/jupyterhub_config.py"


def text(path: Path) -> str:
    return path.read_text("utf-8")


def values() -> dict[str, Any]:
    return yaml.safe_load(text(VALUES))


def check(found: dict[str, Any]) -> None:
    schema = yaml.safe_load(text(Path(__file__).with_name("z2jh.schema.yaml")))
    jsonschema.Draft202012Validator(schema).validate(found)


def test_the_values_are_keys_of_the_chart_of_the_right_kind():
    check(values())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("singleuser:", "singleUser:"),
        ("limit: 4G}", "limit: 4}"),
        ("replicas: 20", "replicas: '20'"),
        ("mem_limit: 8G", "memory_limit: 8G"),
        ("      allowed_groups:", "      groups:"),
        ("    enabled: true", "    enabled: false"),
    ],
)
def test_a_slip_in_the_values_is_seen(old, new):
    assert text(VALUES).count(old) == 1
    with pytest.raises(jsonschema.ValidationError):
        check(yaml.safe_load(text(VALUES).replace(old, new)))


def test_one_version_of_the_chart_everywhere():
    found = {
        path.name: set(re.findall(r"--version ([\d.]+)", text(path))) for path in (VALUES, WORKFLOW)
    }
    found[PAGE.name] = set(re.findall(r"--version ([\d.]+) \\", text(PAGE)))
    assert found == {name: {"4.4.0"} for name in found}


def test_the_image_keeps_the_book_where_no_disk_hides_it():
    """repo2docker installs the package from its own copy, by default in the student's home."""
    assert values()["hub"]["config"]["KubeSpawner"]["notebook_dir"] == "~"
    for path in (VALUES, WORKFLOW, PAGE):
        assert set(re.findall(r"--target-repo-dir (\S+)", text(path))) == {"/srv/attnbook"}, path


def test_both_hubs_give_a_student_the_same():
    """Memory and threads; the page says the same number."""
    (memory,) = re.findall(r'mem_limit = "(\d+G)"', text(CONFIG))
    (threads,) = re.findall(r'"OMP_NUM_THREADS": "(\d+)"', text(CONFIG))
    student = values()["singleuser"]
    assert (student["memory"]["limit"], student["extraEnv"]["OMP_NUM_THREADS"]) == (memory, threads)
    assert f"{memory.removesuffix('G')} GB" in text(PAGE)


def test_assistants_have_the_same_scopes_on_both_hubs():
    (scopes,) = re.findall(r"^HELP = (\[.*\])$", text(CONFIG), re.MULTILINE)
    hub = values()["hub"]
    students, _ = hub["config"]["GenericOAuthenticator"]["allowed_groups"]
    of_students = [f"{scope}!group={students}" for scope in yaml.safe_load(scopes)]
    assert hub["loadRoles"]["help"]["scopes"] == ["admin-ui", "access:servers", *of_students]


def test_no_secret_is_among_the_values():
    assert not re.search(
        r"(?i)^\s*\w*(secret|password|token)\w*:(?! *https)", text(VALUES), re.MULTILINE
    )
