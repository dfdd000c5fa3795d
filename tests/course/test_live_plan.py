"""The script that plans many devices in the page, in Node, against distributed.plan over a grid."""

from __future__ import annotations

import itertools
import json
import subprocess
from dataclasses import asdict, replace
from typing import Any

import pytest
from attnbook_site.maths import node_program
from numpy.testing import assert_allclose

from attnbook.distributed.layout import DEVICES, MODELS, RECOMPUTE, Cluster, Layout, Model
from attnbook.distributed.plan import plan
from attnbook_course.live.figure import read_scripts

HARNESS = """
const cases = JSON.parse(require("fs").readFileSync(0));
const of = ([model, batch, cluster, layout]) => undivided(model, batch, cluster.devices, layout) ??
  device_plan(model, batch, cluster, layout);
process.stdout.write(JSON.stringify(cases.map(of)));
"""
Case = tuple[Model, int, Cluster, Layout]


def grid() -> list[Case]:
    """Every way of dividing, with sizes that do and do not fit."""
    layouts = [
        Layout(zero, heads, ring, stages, experts, micro, recompute, overlap)
        for zero, heads, ring, stages in itertools.product(range(4), (1, 8), (1, 4), (1, 4))
        for experts, micro in ((1, 1), (1, 8), (8, 2))
        for recompute, overlap in zip((*RECOMPUTE, "all"), (True, True, True, False), strict=True)
    ]
    clusters = [
        (2**17, Cluster(8, **DEVICES["A100"], reached=0.5)),
        (2**22, Cluster(256, **DEVICES["H100"])),
    ]
    odd = Model(3.1e9, 7, 300, 6, 2048, experts=3, chosen=2, expert_parameters=2.3e9)
    models = [replace(model, sequence=4096) for model in MODELS.values()]
    return [
        (model, batch, cluster, layout)
        for model in (*models, odd)
        for batch, cluster in clusters
        for layout in layouts
    ]


@pytest.fixture(scope="module")
def both() -> list[tuple[Case, Any]]:
    """Every case, and what the script says of it."""
    cases, given = grid(), []
    for model, batch, cluster, layout in cases:
        sizes = asdict(model) | {"key_heads": model.key_heads or model.heads}
        given.append((sizes, batch, asdict(cluster), asdict(layout)))
    command = [node_program(), "-e", read_scripts("device_plan.js") + HARNESS]
    words = json.dumps(given)
    done = subprocess.run(command, input=words, capture_output=True, text=True, check=True)
    return list(zip(cases, json.loads(done.stdout), strict=True))


def test_the_page_plans_as_python_does(both):
    seen = set()
    for case, found in both:
        if isinstance(found, list):
            continue
        expected = plan(*case)
        for name in ("memory", "seconds", "sending"):
            theirs = getattr(expected, name)
            assert list(found[name]) == list(theirs)
            assert_allclose(list(found[name].values()), list(theirs.values()), rtol=1e-12)
        for name in ("copies", "rows", "held", "step", "tokens_per_second", "utilisation"):
            assert_allclose(found[name], getattr(expected, name), rtol=1e-12)
        assert found["binds"] == expected.binds
        seen.add(found["binds"])
    assert {"memory", "compute", "bubble"} <= seen


def test_the_page_refuses_what_python_refuses(both):
    refused = [(case, found) for case, found in both if isinstance(found, list)]
    assert {found[0] for _, found in refused} >= {"devices", "heads", "experts", "batch"}
    assert 200 < len(refused) < len(both) - 200
    for case, (name, whole, ways) in refused:
        with pytest.raises(ValueError, match=f"^{name}: got {whole}, expected .* {ways}$"):
            plan(*case)
