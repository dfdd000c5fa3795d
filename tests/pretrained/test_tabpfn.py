"""Version 1 of TabPFN in chapter 9's encoder: the logits of its own package, which are stored."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from attnbook.pretrained.tabpfn import tabpfn

STORED = Path(__file__).parents[1] / "tabpfn" / "random.npz"  # by make_random.py beside it


@pytest.fixture(scope="module")
def stored():
    with np.load(STORED) as found:
        return {name: found[name] for name in found.files}


@pytest.fixture
def config(stored):
    return json.loads(str(stored["config"]))


@pytest.fixture
def state(stored):
    return {name[6:]: array for name, array in stored.items() if name.startswith("state/")}


def rows_and_masks(stored):
    """Rows (x, y, 0), then (x, 0, 1), and both masks."""
    x, y = stored["x"], stored["y"]
    n = y.shape[1]
    rows = np.zeros((*x.shape[:2], x.shape[2] + 2), np.float32)
    rows[..., :-2], rows[:, :n, -2], rows[:, n:, -1] = x, y, 1
    known = torch.arange(rows.shape[1]) < n
    return torch.tensor(rows), known, known | torch.eye(len(known), dtype=torch.bool)


def answers(model, rows, mask, n):
    with torch.no_grad():
        return model(rows, mask)[:, n:].numpy()


def test_the_logits_are_those_of_its_package(stored, config, state):
    model, (rows, known, itself) = tabpfn(config, state), rows_and_masks(stored)
    n = stored["y"].shape[1]
    for mask, name in ((known, "known"), (itself, "known_and_itself")):
        logits = answers(model, rows, mask, n)
        np.testing.assert_allclose(logits, stored[f"logits/{name}"], atol=2e-6)
    assert abs(stored["logits/known"] - stored["logits/known_and_itself"]).max() > 0.01


def change_norm(model):
    for block in model.encoder:
        block.norm = "pre"


def change_activation(model):
    model.encoder[1].mlp.activation = "relu"


def change_readout(model):
    model.readout[1] = torch.nn.Identity()


def change_last_norm(model):
    model.encoder_norm = torch.nn.LayerNorm(model.embed_dim)


def change_flag(model):
    model.embedding.weight.data[:, -1] = 0


CHANGES = (change_norm, change_activation, change_readout, change_last_norm, change_flag)


@pytest.mark.parametrize("change", CHANGES)
def test_any_other_network_says_something_else(stored, config, state, change):
    model, (rows, known, _) = tabpfn(config, state), rows_and_masks(stored)
    change(model)
    said = answers(model, rows, known, stored["y"].shape[1])
    assert abs(said - stored["logits/known"]).max() > 0.01


def test_a_checkpoint_as_training_saves_it(stored, config, state, tmp_path):
    file = tmp_path / "checkpoint.cpkt"
    torch.save(({f"module.{n}": torch.tensor(a) for n, a in state.items()}, None, config), file)
    saved, _, entries = torch.load(file, map_location="cpu", weights_only=True)
    again, model = tabpfn(entries, saved), tabpfn(config, state)
    for ours, theirs in zip(again.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


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
def test_entries_that_do_not_fit(config, state, entry, value, message):
    with pytest.raises(ValueError, match=message):
        tabpfn(config | {entry: value}, state)
