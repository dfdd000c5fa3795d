"""What GitHub runs: minimal in rights, bounded in time, and made of commands that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import run_tests
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
EXPRESSION = re.compile(r"\$\{\{.*?\}\}")
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def load(path: Path) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in load(path)["jobs"].values() for step in job["steps"]]


def scripts(path: Path) -> list[str]:
    return [step["run"] for step in steps(path) if "run" in step]


def tool(name: str) -> str:
    """A checker beside this Python or on the PATH; `make env-test` installs them."""
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    assert found, f"{name} is not installed; do: make env-test"
    return found


def run(*command: str, text: str | None = None) -> None:
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflows_are_safe():
    config = str(ROOT / ".github" / "zizmor.yml")
    command = ("--offline", "--no-progress", "--strict-collection", "--config", config)
    run(tool("zizmor"), *command, ".github/workflows")


def test_the_shell_scripts_are_sound():
    run(tool("shellcheck"), ".ci/run")
    for path in WORKFLOWS:
        for script in scripts(path):
            run(tool("shellcheck"), "--shell=bash", "-", text=EXPRESSION.sub("value", script))


@each_workflow
def test_limits(path):
    """Rights to read by default, one run at a time, an end to every job."""
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert "group" in workflow["concurrency"]
    for name, job in workflow["jobs"].items():
        assert 0 < job["timeout-minutes"] <= 150, name
        needs = job.get("needs", [])
        assert {*([needs] if isinstance(needs, str) else needs)} <= {*workflow["jobs"]}, name


@each_workflow
def test_only_actions_of_github_by_their_major_version(path):
    used = [step["uses"] for step in steps(path) if "uses" in step]
    assert [name for name in used if not re.fullmatch(r"actions/[a-z-]+@v\d+", name)] == []


@each_workflow
def test_the_commands_exist(path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {*re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)}
    for script in scripts(path):
        for words in re.findall(r"^make (.+)$", script, re.MULTILINE):
            assert {word for word in words.split() if "=" not in word} <= targets, words
        for file in re.findall(r"(?:tools/\w+\.py|\.ci/\w+)", script):
            assert (ROOT / file).is_file(), file


def test_planted_faults_run_weekly_and_before_a_release():
    weekly, release = (
        ROOT / ".github" / "workflows" / f"{name}.yml" for name in ("weekly", "release")
    )
    assert "make faults" in scripts(weekly)
    assert ".ci/run" in scripts(release)
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^make .*", script, re.MULTILINE) == ['make test-all WITHOUT="avx2 fonts"']
    assert {"triton", "faults", "avx2", "fonts"} < set(run_tests.SETS["all"])
    assert set(run_tests.SETS["test"]) < set(run_tests.SETS["all"])


def test_what_a_push_leaves_out_runs_weekly():
    """Other fonts, which must be there, and an older processor with the pinned versions."""
    jobs = load(ROOT / ".github" / "workflows" / "weekly.yml")["jobs"]
    newest = "\n".join(step.get("run", "") for step in jobs["newest"]["steps"])
    assert "test-all" in newest and "WITHOUT" not in newest
    ours = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for package in re.findall(r"wanted\+=\((fonts-\S+)\)", ours):
        assert package in newest
    (avx2,) = (s for s in jobs["processors"]["steps"] if "run_tests.py avx2" in s.get("run", ""))
    assert "-c constraints.txt" in avx2["run"]
    assert "avx2" in jobs["processors"]["strategy"]["matrix"]["processor"]


def test_the_site_is_published_as_the_five_steps_say():
    """A push to main or a press of a button builds and publishes it, and nothing has to be named."""
    text = (ROOT / "MAINTAINING.md").read_text(encoding="utf-8")
    section = text.partition("## Publish your own copy\n")[2].partition("\n## ")[0]
    assert re.findall(r"^(\d)\. ", section, re.MULTILINE) == ["1", "2", "3", "4", "5"]
    (file,) = re.findall(r"`(\.github/workflows/\S+)`", section)
    workflow = load(ROOT / file)
    assert f"*Actions, {workflow['name']}, Run workflow*" in section
    started = workflow[True]  # what YAML makes of the word "on"
    assert started["push"]["branches"] == ["main"] and "workflow_dispatch" in started
    (published,) = (s for s in steps(ROOT / file) if "upload-pages" in s.get("uses", ""))
    assert published["with"]["path"] == "_build/html"
    assert "attnbook" not in (ROOT / file).read_text(encoding="utf-8")
