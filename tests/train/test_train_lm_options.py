"""What the trainer learns with besides Adam: dropout, weight decay, a held-out text of one's own."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from attnbook import train_lm
from attnbook.train_lm import Options, Refused

TEXT = "the cat sat on the mat, the hat on the cat. " * 40
SMALL = dict(rows=2, window=8, embed_dim=8, heads=2, layers=2, device="cpu")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


def test_a_held_out_text_of_ones_own(text: Path, tmp_path: Path) -> None:
    """All of the text is learned from, and characters of either have a number."""
    other = tmp_path / "other.txt"
    other.write_text("a zebra! " * 9)
    found = train_lm.read_text(Options(text=text, held_out=other, window=8))
    parts = ["".join(found.vocabulary[i] for i in part) for part in (found.train, found.held_out)]
    assert parts == [TEXT, "a zebra! " * 9]
    other.write_bytes(b"a\xff")
    with pytest.raises(Refused, match="--held-out: got byte 0xff at 1"):
        train_lm.read_text(Options(text=text, held_out=other, window=8))


@pytest.fixture
def as_optax_is_written() -> Iterator[None]:
    """Where other tests have told JAX to promote no dtype, which optax does."""
    if find_spec("jax") is None:
        yield
        return
    jax = import_module("jax")
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.mark.usefixtures("as_optax_is_written")
@pytest.mark.parametrize("engine", ["torch", "jax"])
def test_dropout_goes_on_where_it_stopped(engine: str, text: Path, tmp_path: Path) -> None:
    """What is left out depends on the seed and the step, not on the steps that were taken here."""
    pytest.importorskip(engine)
    warnings.simplefilter("ignore")

    def run(folder: str, *words: object) -> list[float]:
        sizes = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
        places = ["--metrics", tmp_path / f"{folder}.jsonl", "--checkpoint", tmp_path / folder]
        asked = [*sizes, "--backend", engine, "--mode", "none", "--text", text, *places, *words]
        assert train_lm.main(list(map(str, asked))) == 0
        lines = (tmp_path / f"{folder}.jsonl").read_text().splitlines()
        return [json.loads(line)["loss"] for line in lines]

    how = ["--dropout", "0.5", "--learning-rate", "0.01", "--warmup", "0", "--every", "2"]
    whole = run("whole", *how, "--steps", 6)
    plain = run("plain", *how, "--steps", 6, "--dropout", "0")
    assert max(abs(np.subtract(whole, plain))) > 1e-3
    run("half", *how, "--steps", 6)
    (tmp_path / "half" / "step-6").rename(tmp_path / "elsewhere")  # step 4 is the newest
    np.testing.assert_allclose(run("half", *how, "--steps", 6, "--resume"), whole, rtol=1e-5)


def test_nothing_is_left_out_of_what_is_measured(text: Path) -> None:
    """The held-out loss with dropout is that of the same parameters without it."""
    pytest.importorskip("torch")
    from attnbook.torch.train_lm import Run, workers

    losses = []
    for dropout in (0.0, 0.5):
        options = Options(text=text, dropout=dropout, **SMALL)
        read = train_lm.read_text(options)
        with workers(options) as group:
            run = Run(options, len(read.vocabulary), group)
            losses.append(run.held_out(read))
        assert run.model.training
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)


def test_more_workers_than_gpus_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two workers and one GPU: both compute on the CPU, and the first of them says so."""
    torch = pytest.importorskip("torch")
    from attnbook.torch.train_lm import _device

    for name, value in {"RANK": "0", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    said = []
    for rank, gpus in ((0, 1), (1, 1), (0, 0)):  # without a GPU nothing else could be meant
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        monkeypatch.setattr(torch.cuda, "device_count", lambda gpus=gpus: gpus)
        assert _device(Options(mode="ddp")) == torch.device("cpu")
        said.append(capsys.readouterr().err)
    assert "2 workers and 1 GPU here" in said[0]
    assert said[1:] == ["", ""]


def test_torch_decays_matrices_alone() -> None:
    """A step of AdamW by hand: θ ← (1 − r d) θ − r sign(g) at the first, with d = 0 for vectors."""
    torch = pytest.importorskip("torch")
    from attnbook.torch.train_lm import adamw

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(3, 4), torch.nn.LayerNorm(4)).double()
    torch.nn.init.normal_(model[1].weight)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimiser = adamw(model, 0.25)
    for group in optimiser.param_groups:
        group["lr"] = 0.1
    model(torch.arange(3)).square().sum().backward()
    optimiser.step()
    for parameter, old in zip(model.parameters(), before, strict=True):
        kept = 1 - 0.1 * 0.25 if old.ndim == 2 else 1.0
        step = parameter.grad / (parameter.grad.abs() + 1e-8)
        np.testing.assert_allclose(parameter.detach(), kept * old - 0.1 * step, rtol=1e-12)


@pytest.mark.usefixtures("as_optax_is_written")
def test_jax_decays_as_optax_does() -> None:
    """Three steps equal those of optax.adamw with a mask."""
    jax = pytest.importorskip("jax")
    optax = pytest.importorskip("optax")
    from attnbook.jax.training import adam, descend

    rng = np.random.default_rng(0)
    learned = {"matrix": jax.numpy.array(rng.normal(size=(3, 2))), "vector": jax.numpy.ones(2)}

    def loss(now: dict) -> object:
        return ((now["matrix"] @ now["vector"] - 1) ** 2).sum() + (now["vector"] ** 4).sum()

    def matrices(learned: dict) -> object:
        return jax.tree.map(lambda a: a.ndim > 1, learned)

    theirs = optax.adamw(0.1, weight_decay=0.25, mask=matrices)
    expected, their_state, state = learned, theirs.init(learned), adam(None).init(learned)
    for _ in range(3):
        updates, their_state = theirs.update(jax.grad(loss)(expected), their_state, expected)
        expected = optax.apply_updates(expected, updates)
        learned, state, _ = descend(loss, adam(None), learned, state, 0.1, 0.25)
    for name in learned:
        np.testing.assert_allclose(learned[name], expected[name], rtol=1e-5)
