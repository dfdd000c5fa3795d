"""The programs of examples/: short, alone, and the package's own model and training."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from attnbook.models import losses
from attnbook.torch import DecoderOnly, train

ROOT = Path(__file__).parents[2]
PROGRAMS = ("writer", "writer_jax")
WINDOW, ROWS, VOCAB, STEPS = 7, 3, 11, 5
SIZES = {"WINDOW": WINDOW, "ROWS": ROWS, "WIDTH": 12, "HEADS": 3, "BLOCKS": 2}
TEXT = np.random.default_rng(1).integers(0, VOCAB, 200)


def program(name: str) -> ModuleType:
    """A program as a module, with sizes for a test in the lines that set them."""
    source = (ROOT / "examples" / f"{name}.py").read_text("utf-8")
    for line in re.findall(r"^[A-Z, ]+ = \d.*$", source, re.M):
        names = line.split(" = ")[0].split(", ")
        ours = f"{line}\n" + "".join(f"{n} = {SIZES[n]}\n" for n in names if n in SIZES)
        source = source.replace(f"{line}\n", ours)
    module = ModuleType(name)
    exec(compile(source, name, "exec"), vars(module))
    assert SIZES.items() <= vars(module).items()
    return module


@pytest.fixture
def ours() -> DecoderOnly:
    """The package's model of these sizes."""
    torch.manual_seed(0)
    return DecoderOnly(VOCAB, WINDOW, embed_dim=12, num_heads=3, mlp_dim=48).double()


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(2).integers(0, VOCAB, (ROWS, WINDOW + 1))


def torch_writer(module: ModuleType, ours: DecoderOnly) -> Any:
    """The program's model with the parameters of the package's."""
    model = module.Writer(VOCAB).double()
    model.load_state_dict(ours.state_dict())
    return model


def jax_parameters(ours: DecoderOnly) -> dict[str, Any]:
    """The parameters of the package's model as writer_jax.py has them."""
    state = {name: jnp.asarray(value.numpy()) for name, value in ours.state_dict().items()}
    p = {"embedding": state.pop("embedding.weight"), "position": state.pop("position")}
    for name in [name for name in state if name.endswith(".weight")]:
        part = name.removesuffix(".weight")
        p[part] = state[name], state[f"{part}.bias"]
    return p


def same_leaves(one: Any, other: Any, **close: float) -> None:
    for found, wanted in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert_allclose(found, wanted, **close)


def same_training(ours: DecoderOnly, batches: list[np.ndarray], rate: float) -> None:
    """Train the package's model by the package's loop."""
    t = np.arange(STEPS)
    rates = rate * np.minimum(1, (t + 1) / 50) * (1 + np.cos(np.pi * t / STEPS)) / 2

    def loss(model, rows):
        return losses.cross_entropy(model(rows[:, :-1]), rows[:, 1:])

    train(ours, loss, [(rows,) for rows in batches], learning_rate=rates.tolist(), clip=1.0)


# In float64 logits differ by the rounding of sums of some hundred terms. Adam divides by the root
# of a squared gradient, or by 1e-8 where that is less, so what rounding leaves of a gradient that
# is zero, as a key's bias has, moves a parameter by 1e-16 / 1e-8 of the rate at most.
CLOSE = {"rtol": 1e-9, "atol": 1e-11}


def test_torch_is_the_packages_model(ours, rows):
    module = program("writer")
    model, tokens = torch_writer(module, ours), torch.tensor(rows)
    assert_allclose(model(tokens[:, :-1]).detach(), ours(tokens[:, :-1]).detach(), **CLOSE)
    module.text_loss(model, tokens).backward()
    losses.cross_entropy(ours(tokens[:, :-1]), tokens[:, 1:]).backward()
    own = dict(model.named_parameters())
    for name, parameter in ours.named_parameters():
        assert_allclose(own[name].grad, parameter.grad, **CLOSE)


def test_torch_trains_as_the_package(ours):
    module = program("writer")
    model, text = torch_writer(module, ours), torch.tensor(TEXT)
    torch.manual_seed(3)
    assert len(list(module.train(model, text, STEPS))) == STEPS
    torch.manual_seed(3)
    firsts = [torch.randint(len(text) - WINDOW, (ROWS, 1)).numpy() for _ in range(STEPS)]
    same_training(ours, [TEXT[first + np.arange(WINDOW + 1)] for first in firsts], module.RATE)
    for name, value in ours.state_dict().items():
        assert_allclose(model.state_dict()[name], value, **CLOSE)


def test_jax_is_the_packages_model(ours, rows):
    module = program("writer_jax")
    with jax.enable_x64(True):
        p, tokens = jax_parameters(ours), torch.tensor(rows)
        expected = ours(tokens[:, :-1])
        assert_allclose(module.logits_of(p, rows[:, :-1]), expected.detach(), **CLOSE)
        gradients = jax.grad(module.loss_of)(p, rows)
        losses.cross_entropy(expected, tokens[:, 1:]).backward()
        with torch.no_grad():
            for parameter in ours.parameters():
                parameter.copy_(parameter.grad)
        same_leaves(gradients, jax_parameters(ours), **CLOSE)


def test_jax_trains_as_the_package(ours):
    module = program("writer_jax")
    with jax.enable_x64(True):
        rng = np.random.default_rng(3)
        *_, (p, _) = module.train_in_jax(jax_parameters(ours), TEXT, STEPS, rng)
        rng = np.random.default_rng(3)
        firsts = [rng.integers(len(TEXT) - WINDOW, size=(ROWS, 1)) for _ in range(STEPS)]
        same_training(ours, [TEXT[first + np.arange(WINDOW + 1)] for first in firsts], module.RATE)
        # PyTorch clips by the norm + 1e-6; so much of all steps, 1.2e-3 together, may differ
        same_leaves(p, jax_parameters(ours), rtol=1e-9, atol=2e-9)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_writes_what_the_model_expects(name, ours):
    """Near temperature 0 each token is the most probable after the window before it."""
    module, begun = program(name), [1, 2, 3]
    if name == "writer":
        torch.manual_seed(0)
        model = torch_writer(module, ours)
        written = module.generate(model, torch.tensor(begun), 10, temperature=1e-6).tolist()
    else:
        with jax.enable_x64(True):
            p = jax_parameters(ours)
            written = module.generate_in_jax(p, np.array(begun), 10, np.random.default_rng(0), 1e-6)
    for _ in range(10):
        with torch.no_grad():
            begun.append(int(ours(torch.tensor(begun[-WINDOW:])[None])[0, -1].argmax()))
    assert list(map(int, written)) == begun


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_short_and_alone(name):
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    program, _, reading = source.partition("\nif __name__")
    body = program[program.index("\nWIDTH") :]  # without imports
    assert sum(map(bool, body.splitlines())) <= 105 and len(reading.splitlines()) <= 20
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name).split(".")[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    library = "torch" if name == "writer" else "jax"
    files = {"sys", "pathlib", "json", "hashlib", "safetensors"}
    assert imported <= {"math", "pydoc_data", "numpy", library} | files


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs(name, tmp_path):
    """From another folder, without the package; a few steps in place of two thousand."""
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert "STEPS, RATE = 16, 2000, 4e-3" in source
    (tmp_path / "short.py").write_text(source.replace("2000", "3").replace("400", "4"), "utf-8")
    alone = "import runpy, sys; sys.modules['attnbook'] = None; "
    run = [sys.executable, "-c", f"{alone}runpy.run_path('short.py', run_name='__main__')"]
    own = "Das ist mein Text: ß und 𝒮.\n" * 50
    for text, command in (("help", run), (own, [*run, "own.txt"])):
        (tmp_path / "own.txt").write_text(text, "utf-8")
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        first, held_out, written = done.stdout.split("\n", 2)
        assert first.startswith("step    0") and held_out.startswith("held out: ")
        assert len(written.removesuffix("\n")) == 5
        assert (tmp_path / "writer.safetensors").is_file()
    assert set(written) <= set(own)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_held_out_part_counts_as_in_the_chapter(name, ours):
    """Windows that overlap by half; the second half of each counts, in bits."""
    starts, half = range(0, len(TEXT) - WINDOW, WINDOW // 2), WINDOW // 2
    rows = torch.tensor(np.array([TEXT[first : first + WINDOW + 1] for first in starts]))
    with torch.no_grad():
        log_p = ours(rows[:, :-1]).log_softmax(-1)[:, half:]
    expected = -log_p.gather(-1, rows[:, half + 1 :, None]).mean() / np.log(2)
    module = program(name)
    if name == "writer":
        found = module.held_out_bits(torch_writer(module, ours), torch.tensor(TEXT))
    else:
        with jax.enable_x64(True):
            found = module.held_out_bits(jax_parameters(ours), TEXT)
    assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_file_that_is_no_text_is_said(name, tmp_path):
    module = program(name)
    for data, words in (
        (None, "cannot be read as text in UTF-8: .*No such file"),
        (b"\x89PNG", "cannot be read as text in UTF-8: .*invalid start byte"),
        (b"", "0 characters, fewer than 140"),
        ("ß".encode() * 139, "139 characters, fewer than 140"),
    ):
        if data is not None:
            (tmp_path / "own.txt").write_bytes(data)
        with pytest.raises(SystemExit, match=words):
            module.read(tmp_path / "own.txt")
