"""The processes of a launch, joined: JAX then sees the devices of all of them.

Who has started them is read from the environment. Slurm, Open MPI and Kubernetes JAX knows itself.
"""

import importlib
import importlib.util
import os
import socket
from typing import Any

import jax

from attnbook.distributed.meeting import MEETING, agreed_word

GIVEN = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
CLUSTERS = {  # what says that JAX will find the others, and what says how many they are
    "SLURM_STEP_NODELIST": "SLURM_NTASKS",
    "OMPI_MCA_orte_hnp_uri": "OMPI_COMM_WORLD_SIZE",
}
KUBERNETES = "JOB_COMPLETION_INDEX"  # of an indexed job; JAX asks the cluster for the rest
END_SECONDS = 30  # that they may take to end


def join() -> bool:
    """Join the processes of this launch by jax.distributed, before JAX computes anything.

    In this order: JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID; the variables that
    torchrun sets; a cluster that JAX knows. Without any of them, or with a single process, nothing
    happens.

    Returns:
        Whether this call has joined them, so that who called it parts them again.

    Raises:
        ValueError: some of the three names without the others, a number that is none or that does
            not fit.
        RuntimeError: JAX has computed already, or the others do not come.
    """
    if jax.distributed.is_initialized():
        return False
    found = _given() or _torchrun() or _cluster()
    if found is None or found.get("num_processes") == 1:
        return False
    found |= {
        "initialization_timeout": int(MEETING.total_seconds()),
        "shutdown_timeout_seconds": END_SECONDS,
    }
    jax.distributed.initialize(**found)
    return True


def _given() -> dict[str, Any] | None:
    """What the three names say."""
    got = {name: os.environ[name] for name in GIVEN if name in os.environ}
    if not got or (len(got) < len(GIVEN) and _cluster() is not None):
        return None
    for name in GIVEN:
        if name not in got:
            raise ValueError(f"{name}: got none beside {' and '.join(got)}, expected all three")
    count, process = (_number(name) for name in GIVEN[1:])
    return _addressed(got[GIVEN[0]], count, process, GIVEN[1:])


def _torchrun() -> dict[str, Any] | None:
    """What torchrun's variables say, or those of a script that sets the same ones."""
    if not all(name in os.environ for name in TORCHRUN):
        return None
    rank, world = (_number(name) for name in TORCHRUN[:2])
    if world == 1:
        return {"num_processes": 1}
    found = _addressed(_agreed_address(rank, world), world, rank, ("WORLD_SIZE", "RANK"))
    # torchrun starts one process a GPU; a single one on a machine has all its GPUs
    if "JAX_LOCAL_DEVICE_IDS" not in os.environ and os.environ.get("LOCAL_WORLD_SIZE", "1") != "1":
        found["local_device_ids"] = [_number("LOCAL_RANK")]
    return found


def _cluster() -> dict[str, Any] | None:
    """What is left for JAX to find out, where more than one process has been started."""
    many = any(sign in os.environ and _number(n) > 1 for sign, n in CLUSTERS.items())
    if not many and not (KUBERNETES in os.environ and importlib.util.find_spec("kubernetes")):
        return None
    names = {"num_processes": GIVEN[1], "process_id": GIVEN[2]}
    return {key: _number(name) for key, name in names.items() if name in os.environ}


def _addressed(address: str, count: int, process: int, names: tuple[str, ...]) -> dict[str, Any]:
    if not 0 <= process < count:
        raise ValueError(f"{names[1]}: got {process}, expected 0 to {count - 1}, below {names[0]}")
    return {
        "coordinator_address": address,
        "num_processes": count,
        "process_id": process,
        "cluster_detection_method": "deactivate",
    }


def _number(name: str) -> int:
    value = os.environ.get(name, "")
    if not value.isdecimal():
        raise ValueError(f"{name}: got {value!r}, expected an integer of 0 or more")
    return int(value)


def _agreed_address(rank: int, world: int) -> str:
    """Where rank 0 will listen, which torchrun's store tells the others.

    torchrun itself listens on MASTER_PORT, and rank 0 need not run where MASTER_ADDR says. A script
    that merely sets the variables leaves that port to whom it starts.
    """
    host, port = os.environ["MASTER_ADDR"], _number("MASTER_PORT")
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return f"{host}:{port}"
    dist = importlib.import_module("torch.distributed")  # torchrun is PyTorch's own
    store = dist.TCPStore(host, port, is_master=False, timeout=MEETING)
    key = f"attnbook/address/{agreed_word(store, rank, world)}"  # anew in every start
    if rank == 0:
        store.set(key, f"{_own_address(host, port)}:{_free_port()}")
    return store.get(key).decode()


def _own_address(host: str, port: int) -> str:
    """The address of this machine on the way to another; the given name where that is this one."""
    family, _, _, _, there = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as way:  # nothing is sent
        way.connect(there)
        here = way.getsockname()[0]
    if here == there[0]:
        return host
    return f"[{here}]" if family == socket.AF_INET6 else here


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("", 0))
        return free.getsockname()[1]
