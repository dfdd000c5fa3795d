"""What GitHub runs: minimal in rights, bounded in time, and made of commands that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import stages
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = {path.stem: path for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)


def load(name: str) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(WORKFLOWS[name].read_text(encoding="utf-8"))
    return found


def scripts(name: str) -> str:
    steps = [step for job in load(name)["jobs"].values() for step in job["steps"]]
    return "\n".join(step["run"] for step in steps if "run" in step)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_rights_to_read_an_end_to_every_job_and_commands_that_exist(name):
    workflow, ran = load(name), scripts(name)
    assert workflow["permissions"] == {"contents": "read"}
    assert "group" in workflow["concurrency"]
    assert all(0 < job["timeout-minutes"] <= 240 for job in workflow["jobs"].values())
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {*TARGET.findall(makefile), "env-mutation", "env-test"}
    for words in re.findall(r"^make (.+)$", ran, re.MULTILINE):
        assert {word for word in words.split() if "=" not in word} <= targets, words
    for file in re.findall(r"(?:tools/\w+\.py|\.ci/\w+)", ran):
        assert (ROOT / file).is_file(), file


def test_a_release_is_tested_as_a_push_is_and_the_week_has_the_rest():
    assert ".ci/run" in scripts("release") and ".ci/run" in scripts("test")
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (left,) = re.findall(r'^make test-all WITHOUT="?(.*?)"?$', script, re.MULTILINE)
    assert {*left.split()} < set(stages.SETS["all"])
    assert "make PY=python test-all\n" in scripts("weekly") + "\n"
    assert "run_tests.py avx2" in scripts("weekly")
