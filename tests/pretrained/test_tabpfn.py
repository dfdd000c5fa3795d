"""Version 1 of TabPFN in chapter 9's encoder: the logits of its own package, which are stored."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from attnbook.pretrained import tabpfn

STORED = np.load(Path(__file__).parents[1] / "tabpfn" / "random.npz")  # by make_random.py beside it
CONFIG = json.loads(str(STORED["config"]))
STATE = {name[6:]: STORED[name] for name in STORED.files if name.startswith("state/")}


def answers(model, itself=False):
    """Logits of the open rows: (x, y, 0) are known, (x, 0, 1) open; all read the known ones."""
    x, y = STORED["x"], STORED["y"]
    n = y.shape[1]
    rows = np.zeros((*x.shape[:2], x.shape[2] + 2), np.float32)
    rows[..., :-2], rows[:, :n, -2], rows[:, n:, -1] = x, y, 1
    known = torch.arange(rows.shape[1]) < n
    mask = known | torch.eye(len(known), dtype=torch.bool) if itself else known
    with torch.no_grad():
        return model(torch.tensor(rows), mask)[:, n:].numpy()


def test_the_logits_are_those_of_its_package():
    """Of a checkpoint as training saves it, too: every name behind "module."."""
    for state in (STATE, {f"module.{name}": torch.tensor(a) for name, a in STATE.items()}):
        model = tabpfn(CONFIG, state)
        for itself, name in ((False, "known"), (True, "known_and_itself")):
            np.testing.assert_allclose(answers(model, itself), STORED[f"logits/{name}"], atol=2e-6)
    assert abs(STORED["logits/known"] - STORED["logits/known_and_itself"]).max() > 0.01


def test_another_network_says_something_else():
    model = tabpfn(CONFIG, STATE)
    model.embedding.weight.data[:, -1] = 0  # whether y is open
    assert abs(answers(model) - STORED["logits/known"]).max() > 0.01


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("canonical_y_encoder", True, "canonical_y_encoder: got True, expected False"),
        ("nan_prob_a_reason", 0.2, "nan_prob_a_reason: got 0.2, expected 0"),
        ("nlayers", 1, "got transformer_encoder.layers.1.* expected no tensor of that name"),
        ("nlayers", 3, "got no tensor transformer_encoder.layers.2.self_attn.in_proj_weight"),
        ("num_features", 5, r"encoder.weight: got shape \(8, 4\), expected \(8, 5\)"),
        ("nhead", None, "got no entry nhead, expected one"),
    ],
)
def test_entries_that_do_not_fit(entry, value, message):
    with pytest.raises(ValueError, match=message):
        tabpfn(CONFIG | {entry: value}, STATE)
