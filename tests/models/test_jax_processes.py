"""Who the other processes are; many devices stand in tests/distributed."""

from __future__ import annotations

import pytest

jax = pytest.importorskip("jax")

from attnbook.jax import processes  # noqa: E402


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """What jax.distributed.initialize is called with; nothing is started."""
    calls: list[dict] = []
    monkeypatch.setattr(jax.distributed, "initialize", lambda **given: calls.append(given))
    for name in (*processes.GIVEN, *processes.TORCHRUN, *processes.CLUSTERS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv(processes.KUBERNETES, raising=False)
    return calls


OWN = {"JAX_COORDINATOR_ADDRESS": "a:1", "JAX_NUM_PROCESSES": "4", "JAX_PROCESS_ID": "3"}
SCRIPT = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "b", "MASTER_PORT": "2"}
SLURM = {"SLURM_STEP_NODELIST": "n[1-2]", "SLURM_NTASKS": "2"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        (OWN, ("a:1", 4, 3)),
        (SCRIPT, ("b:2", 2, 1)),
        (OWN | SCRIPT | SLURM, ("a:1", 4, 3)),
        (SCRIPT | SLURM, ("b:2", 2, 1)),  # torchrun, once on every machine
        (SLURM, (None, None, None)),
        (SLURM | {"SLURM_NTASKS": "1"}, None),
    ],
)
def test_who_has_started_this_process(
    started: list[dict], monkeypatch: pytest.MonkeyPatch, variables: dict, expected: tuple | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert processes.join() == (expected is not None)
    names = ("coordinator_address", "num_processes", "process_id")
    assert [tuple(map(call.get, names)) for call in started] == ([expected] if expected else [])
    if expected and expected[0]:
        assert started[0]["cluster_detection_method"] == "deactivate"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"JAX_PROCESS_ID": "0"}, "JAX_COORDINATOR_ADDRESS: got none beside JAX_PROCESS_ID"),
        (OWN | {"JAX_NUM_PROCESSES": "two"}, "JAX_NUM_PROCESSES: got 'two', expected an integer"),
        (OWN | {"JAX_PROCESS_ID": "4"}, "JAX_PROCESS_ID: got 4, expected 0 to 3"),
        (SCRIPT | {"RANK": "2"}, "RANK: got 2, expected 0 to 1"),
    ],
)
def test_names_that_do_not_fit(
    started: list[dict], monkeypatch: pytest.MonkeyPatch, variables: dict, message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message):
        processes.join()
    assert started == []
