"""What learns is built on the page before the package's is used."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnbook import torch as torch_layers
from attnbook.train import training
from attnbook_course.road import ROAD
from experiments import trained_recall

ROOT = Path(__file__).parents[2]

CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```", re.M | re.S)
# A use of the package, and the chapter and line in which the reader has built the same.
BUILT = {
    r"(torch|jax)_layers\.train\(": ("02", "    theta = theta - 1.0 * slope"),
    r"(torch|jax)_layers\.MLP\(": ("ju", "def mlp(x, W_1, b_1, W_2, b_2, activation=relu):"),
    r"\bGRUCell\(": ("04", "def gru_cell(x, state, W, b, U, d):"),
    r"\bEncoderDecoder\(": ("04", "def encode(model, words):"),
    r"losses\.cross_entropy\(": ("ju", "def cross_entropy_jax(model, letters, following):"),
    r"decoding\.greedy\(": ("04", "def write(model, words, longest=100):"),
    r"_layers\.DecoderOnly\(": ("07", "class Model(torch.nn.Module):"),
    r"sampling\.sample\(": ("08", "def generate(model, tokens, length, temperature=0.7):"),
}


def cells() -> list[tuple[str, str]]:
    """The code cells of all chapters in order, each with its chapter's number, "ju" the interlude's."""
    later = sorted(path.stem for path in (ROOT / "chapters").glob("1*.md"))
    return [
        (name[:2], cell)
        for name in (*ROAD, *later)
        for cell in CELL.findall((ROOT / "chapters" / f"{name}.md").read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("use", BUILT)
def test_it_is_built_before_it_is_imported(use):
    chapter, line = BUILT[use]
    of_all = cells()
    place = next(at for at, (own, cell) in enumerate(of_all) if own == chapter and line in cell)
    visible = of_all[place][1].split("\n\n")[0]
    assert "hide-" not in visible
    used = [at for at, (_, cell) in enumerate(of_all) if re.search(use, cell)]
    assert used, "nobody uses it"
    assert used[0] > place, of_all[used[0]]


OWN = ("def read(", "def held_out_bits(", "def save(")


@pytest.mark.parametrize("name", ["writer", "writer_jax"])
def test_a_program_is_what_the_page_shows(name):
    """Chapter 8 has every function and class of the program, but what reads, measures and saves
    files of the reader's own, to the letter."""
    program = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    body = program[: program.index("\nif __name__")].split("\n\n\n")[1:]
    page = "\n".join(cell for chapter, cell in cells() if chapter == "08")
    assert len(body) >= 7
    for part in body:
        if not part.removeprefix("@torch.no_grad()\n").startswith(OWN):
            assert part.strip() in page


def page_of_recall() -> dict[str, Any]:
    """What chapter 11 defines to train its layers, with its imports."""
    of_chapter = [cell for chapter, cell in cells() if chapter == "11"]
    imports = next(cell for cell in of_chapter if "from attnbook.train import training" in cell)
    layers = next(cell for cell in of_chapter if "class Memory(" in cell)
    loop = next(cell for cell in of_chapter if "def recall_loss(" in cell)
    names: dict[str, Any] = {}
    exec("\n".join(re.findall(r"^(?:import|from) .+$", imports, re.M)), names)
    exec(layers.replace(":tags: [hide-cell]", ""), names)
    exec(loop[: loop.index("early = {}")], names)
    return names


@pytest.mark.parametrize("task", trained_recall.TASKS)
@pytest.mark.parametrize(
    "kinds",
    [*((kind,) for kind in trained_recall.KINDS), *trained_recall.STACKS.values()],
    ids="+".join,
)
def test_chapter_11_has_its_benchmarks_layers_and_rows(kinds, task):
    page, logits = page_of_recall(), []
    for memory, rows in (
        (page["Memory"], page["rows"]),
        (trained_recall.Memory, trained_recall.rows),
    ):
        *given, right = rows(np.random.default_rng(5), 3, 9, task)
        torch.manual_seed(2)
        with torch.no_grad():
            logits.append(memory(*kinds)(*map(torch.tensor, given)).numpy())
        logits.append(right)
    np.testing.assert_allclose(logits[0], logits[2], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(logits[1], logits[3])


def test_chapter_11_has_its_benchmarks_training():
    _, ours = page_of_recall()["trained"](["delta"], "recurring", 3, steps=50)
    torch.manual_seed(3)
    _, theirs = torch_layers.train(
        trained_recall.Memory("delta"),
        trained_recall.loss,
        trained_recall.batches("recurring", 3, 50),
        learning_rate=training.warm_cosine(trained_recall.RATE, 50, warmup=50),
        clip=1.0,
    )
    np.testing.assert_allclose(ours.losses, theirs.losses, rtol=1e-3)
