"""The trainer in one process: options, texts, a plain loop's losses, a run that goes on, writing."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from attnbook import train_lm, write
from attnbook.generate.sampling import sample
from attnbook.train.byte_pairs import learn_pairs
from attnbook.train.language_model import checkpoints
from attnbook.train.language_model.options import Refused
from attnbook.train.language_model.text import TrainingText, Vocabulary
from attnbook.train.training import step_batch
from attnbook.train_lm import Options, parse, read_text, share

TEXT = "the cat sat on the mat, the hat on the cat. " * 40
SIZES = dict(rows=2, window=8, embed_dim=8, heads=2, layers=1, steps=6, every=2, device="cpu")
BOTH = pytest.mark.parametrize("library", ["torch", "jax"])


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


@pytest.fixture(autouse=True)
def as_optax_is_written() -> Iterator[None]:
    """Where other tests have told JAX to promote no dtype, which optax does."""
    jax = sys.modules.get("jax")
    if jax is None:
        yield
        return
    with jax.numpy_dtype_promotion("standard"):
        yield


def options_of(backend: str, text: Path, **more: object) -> list[str]:
    said = SIZES | {"backend": backend, "mode": "none", "text": text} | more
    return [f"--{name.replace('_', '-')}={value}" for name, value in said.items()]


def losses_in(file: Path) -> list[float]:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    assert all(("held_out" in line) == (line["step"] % 2 == 0) for line in lines)
    return [line["loss"] for line in lines]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--steps 0", "--steps: got 0, expected an integer, 1 or more"),
        ("--steps 2.5", "--steps: got 2.5, expected an integer, 1 or more"),
        ("--seed -1", "--seed: got -1, expected an integer, 0 or more"),
        ("--learning-rate nan", "got nan, expected a number above 0"),
        ("--mode tp", "invalid choice: 'tp'"),
        ("--heads 3", "--heads: got 3, expected a divisor of 128"),
        ("--resume", "--resume: got no --checkpoint"),
        ("--dropout 1", "--dropout: got 1, expected a number from 0 to below 1"),
        ("--weight-decay -1", "--weight-decay: got -1, expected a number of at least 0"),
        ("--held-out file", "--held-out: got no --text, expected the text to learn from"),
    ],
)
def test_wrong_options(words: str, expected: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as left:
        train_lm.main(words.split())
    assert left.value.code == 2
    assert expected in capsys.readouterr().err.splitlines()[-1]


def test_the_mode_follows_from_the_devices() -> None:
    asked = parse(["--rows", "4", "--mode", "fsdp"])
    assert [parse([]).mode_of(n, 1) for n in (1, 2)] == ["none", "ddp"]
    assert asked.mode_of(1, 1) == "fsdp"
    with pytest.raises(Refused, match="--rows: got 4, expected a multiple of 3, the workers"):
        asked.mode_of(3, 3)
    with pytest.raises(Refused, match="--mode: got none with 2 workers, expected ddp or fsdp"):
        parse(["--mode", "none"]).mode_of(2, 2)


def test_workers_share_a_batch() -> None:
    batch = np.arange(24).reshape(12, 2)
    for world in (1, 2, 3, 4):
        shares = [share(batch, rank, world) for rank in range(world)]
        assert {len(part) for part in shares} == {12 // world}
        assert_array_equal(np.concatenate(shares), batch)


def test_a_file_a_folder_and_a_held_out_text(text: Path, tmp_path: Path) -> None:
    one = read_text(Options(text=text, window=8))
    assert one.vocabulary.tokens == sorted(set(TEXT))
    assert one.vocabulary.decode([*one.train, *one.held_out]) == TEXT
    assert len(one.held_out) == len(TEXT) // 10
    folder = tmp_path / "folder"
    (folder / "b").mkdir(parents=True)
    (folder / "b" / "2.txt").write_text(TEXT[900:])
    (folder / "1.txt").write_text(TEXT[:900])
    (folder / ".hidden").write_bytes(b"\xff")
    whole = read_text(Options(text=folder, window=8))
    words = whole.vocabulary.decode([*whole.train, *whole.held_out])
    assert words == TEXT[:900] + "\n" + TEXT[900:]
    (tmp_path / "other.txt").write_text("a zebra! " * 9)
    own = read_text(Options(text=text, held_out=tmp_path / "other.txt", window=8))
    parts = [own.vocabulary.decode(part) for part in (own.train, own.held_out)]
    assert parts == [TEXT, "a zebra! " * 9]


def test_texts_that_are_refused(text: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bytes.txt").write_bytes(b"abc\xff")
    for options, expected in (
        (Options(text=tmp_path / "none.txt"), "--text: got .*none.txt, expected .* No such file"),
        (Options(text=tmp_path / "bytes.txt"), "--text: .*expected a text in UTF-8: .* 0xff"),
        (Options(text=text, held_out=tmp_path / "bytes.txt"), "--held-out: got .*bytes.txt"),
        (Options(text=tmp_path / "empty"), "got 0 tokens to learn from"),
        (Options(text=text, window=len(TEXT) // 10), "expected more than a window of 176"),
    ):
        with pytest.raises(Refused, match=expected):
            read_text(options)
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(Refused, match="--tokens: got pairs, expected the library regex"):
        read_text(Options(text=text, tokens="pairs"))


def test_numbers_of_characters_and_back() -> None:
    vocabulary = Vocabulary(["a", "b", "\n"])
    assert vocabulary.encode("ba\n").tolist() == [1, 0, 2]
    assert vocabulary.decode([1, 0, 2]) == "ba\n"
    with pytest.raises(ValueError, match=r"text: got 'é', expected characters of 'ab\\n'"):
        vocabulary.encode("bé")


def test_byte_pairs_by_hand(text: Path) -> None:
    pytest.importorskip("regex")
    pairs = learn_pairs("aab aab aab ab", 259)
    assert pairs.tokens[256:] == ["ab", "aab", "Ġaab"]  # 4 times, 3 times, twice
    assert pairs.decode(pairs.encode("ab aab")) == "ab aab"
    assert learn_pairs("abc", 300).tokens[256:] == []  # what occurs once is no pair
    found = read_text(Options(text=text, window=8, tokens="pairs", vocabulary=270))
    assert len(found.vocabulary.tokens) == 270 and found.train.max() < 270
    assert len(found.train) < 0.9 * len(TEXT) / 2
    assert found.vocabulary.decode(found.vocabulary.encode("the zebra é")) == "the zebra é"


def test_held_out_windows() -> None:
    text = TrainingText(np.arange(9), np.arange(900), Vocabulary([]))
    batches = list(text.held_out_batches(100, 6))
    assert [batch.shape for batch in batches] == [(100, 7)] * 2  # 149 windows do not overlap
    first = np.concatenate(batches)[:, 0]
    assert first[0] == 0 and first[-1] == 893 and set(np.diff(first)) == {4, 5}
    assert len(list(text.held_out_batches(100, 1))) == 3  # of 898, no more than are needed
    assert all((np.diff(batch) == 1).all() for batch in batches)


def plain_torch(options: Options, tokens: np.ndarray, size: int) -> list[float]:
    """What one would write in an afternoon."""
    torch, layers = pytest.importorskip("torch"), pytest.importorskip("attnbook.torch")
    torch.manual_seed(options.seed)
    model = layers.DecoderOnly(size, 8, 8, 2, 32, 1)
    optimiser = torch.optim.Adam(model.parameters())
    losses = []
    for step, rate in enumerate(options.rates(), 1):
        batch = step_batch(tokens, step, rows=2, window=8, seed=options.seed)
        windows = torch.tensor(batch)
        logits = model(windows[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.mT, windows[:, 1:])
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.param_groups[0]["lr"] = rate
        optimiser.step()
        losses.append(loss.item())
    return losses


def plain_jax(options: Options, tokens: np.ndarray, size: int) -> list[float]:
    """The same with optax."""
    jax, layers = pytest.importorskip("jax"), pytest.importorskip("attnbook.jax")
    import equinox as eqx
    import optax

    model = layers.DecoderOnly(size, 8, 8, 2, 32, 1, key=jax.random.key(options.seed))
    rates = jax.numpy.asarray(options.rates())
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(lambda count: rates[count]))
    state, losses = optimiser.init(eqx.filter(model, eqx.is_inexact_array)), []

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss_of(model, windows):
        logits = model(windows[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, windows[:, 1:]).mean()

    for step in range(1, options.steps + 1):
        batch = step_batch(tokens, step, rows=2, window=8, seed=options.seed)
        loss, gradient = loss_of(model, jax.numpy.asarray(batch))
        updates, state = optimiser.update(gradient, state)
        model = eqx.apply_updates(model, updates)
        losses.append(float(loss))
    return losses


@BOTH
def test_the_losses_of_a_plain_loop(library: str, text: Path, tmp_path: Path) -> None:
    """20 steps in single precision; Adam divides by a gradient's size, so roundings of it grow."""
    pytest.importorskip(library)
    words = options_of(library, text, steps=20, learning_rate=0.01, warmup=5, seed=3)
    assert train_lm.main([*words, f"--metrics={tmp_path / 'losses'}"]) == 0
    options = parse(words)
    tokens = read_text(options)
    plain = {"torch": plain_torch, "jax": plain_jax}[library]
    expected = plain(options, tokens.train, len(tokens.vocabulary.tokens))
    assert_allclose(losses_in(tmp_path / "losses"), expected, rtol=1e-4)
    assert expected[-1] < 0.95 * expected[0]


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
        assert_allclose(parameter.detach(), kept * old - 0.1 * step, rtol=1e-12)


def test_jax_decays_as_optax_does() -> None:
    """Three steps equal those of optax.adamw with a mask."""
    jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
    from attnbook.jax.training import adam, descend

    rng = np.random.default_rng(0)
    learned = {"matrix": jax.numpy.array(rng.normal(size=(3, 2))), "vector": jax.numpy.ones(2)}

    def loss(now: dict) -> object:
        return ((now["matrix"] @ now["vector"] - 1) ** 2).sum() + (now["vector"] ** 4).sum()

    mask = {"matrix": True, "vector": False}
    theirs = optax.adamw(0.1, weight_decay=0.25, mask=mask)
    expected, their_state, state = learned, theirs.init(learned), adam(None).init(learned)
    for _ in range(3):
        updates, their_state = theirs.update(jax.grad(loss)(expected), their_state, expected)
        expected = optax.apply_updates(expected, updates)
        learned, state, _ = descend(loss, adam(None), learned, state, 0.1, 0.25)
    for name in learned:
        assert_allclose(learned[name], expected[name], rtol=1e-5)


@BOTH
def test_a_run_stops_and_goes_on(library: str, text: Path, tmp_path: Path, capsys) -> None:
    """With dropout, which depends on seed and step alone; and what is refused in one line."""
    engine = train_lm.engine_of(pytest.importorskip(library).__name__)
    warnings.simplefilter("ignore")
    how = dict(dropout=0.5, learning_rate=0.01, checkpoint=tmp_path / "run")
    words = options_of(library, text, **how, metrics=tmp_path / "losses")
    assert train_lm.main(words) == 0
    whole = losses_in(tmp_path / "losses")
    assert [one.name for one in checkpoints.complete(tmp_path / "run")] == ["step-6", "step-4"]

    (tmp_path / "run" / "step-6").rename(tmp_path / "run" / "writing-step-6")  # cut short
    with open(tmp_path / "losses", "a") as metrics:
        metrics.write('{"step": 7, "lo')
    assert train_lm.main([*words, "--resume"]) == 0
    assert f"resume: {tmp_path / 'run' / 'step-4'}" in capsys.readouterr().err
    assert_allclose(losses_in(tmp_path / "losses"), whole, rtol=1e-6)

    def cut_short(run: object, folder: Path) -> None:
        folder.mkdir()
        (folder / "part").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.Run, "save", cut_short)
        assert train_lm.main([*words, "--resume", "--steps=8"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    left = [one.name for one in sorted((tmp_path / "run").iterdir())]
    assert left == ["step-4", "step-6", "writing-step-8"]
    assert train_lm.main([*words, "--resume", "--steps=8"]) == 0
    assert checkpoints.complete(tmp_path / "run")[0].name == "step-8"
    (tmp_path / "other.txt").write_text(TEXT.upper())
    (tmp_path / "notes").write_text("a text")
    fresh = [f"--checkpoint={tmp_path / 'new'}", f"--metrics={tmp_path / 'm'}"]
    too_much = (
        1e300 if library == "jax" else 1e30
    )  # in float64, too, where another test asked for it
    for more, expected in (
        ([], "--checkpoint: got .* with step-8 of an earlier run, expected a new folder"),
        (["--resume", "--layers=2"], "--layers: got 2, expected 1, as in .*step-8"),
        (["--resume", f"--text={tmp_path / 'other.txt'}"], "--text: got 12 tokens, expected the"),
        ([f"--checkpoint={tmp_path / 'new'}"], "--metrics: got .*losses, which is not empty"),
        (["--resume", f"--metrics={tmp_path / 'notes'}"], "--metrics: got .*notes, which is not"),
        ([f"--checkpoint={text}/in"], "Not a directory"),
        ([*fresh, f"--learning-rate={too_much}", "--dropout=0"], "loss: got nan at step"),
    ):
        assert train_lm.main([*words, *more]) == 2
        assert re.search(expected, capsys.readouterr().err), expected


def test_nothing_is_left_out_of_what_is_measured(text: Path) -> None:
    """The held-out loss with dropout is that of the same parameters without it."""
    engine = train_lm.engine_of(pytest.importorskip("torch").__name__)
    losses = []
    for dropout in (0.0, 0.5):
        options = Options(text=text, dropout=dropout, **SIZES)
        read = read_text(options)
        run = engine.Run(options, len(read.vocabulary.tokens))
        losses.append(run.measure(next(read.held_out_batches(2, 8))))
        assert run.model.training
    assert_allclose(losses[1], losses[0], rtol=1e-6)


@BOTH
def test_the_command_names_the_library_that_is_missing(library: str, monkeypatch, capsys) -> None:
    for name in (f"attnbook.{library}.train_lm", f"attnbook.{library}"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    assert train_lm.main(["--backend", library, "--steps", "1"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"--backend {library}: got no module {library}, expected it: ")
    assert f'"attnbook[{library}]"' in said


@BOTH
def test_it_writes(library: str, text: Path, tmp_path: Path, capsys) -> None:
    """The same text for the same seed, beyond the window; greedy, the best character each time."""
    engine = train_lm.engine_of(pytest.importorskip(library).__name__)
    warnings.simplefilter("ignore")
    folder = tmp_path / "run"
    assert train_lm.main(options_of(library, text, checkpoint=folder, steps=2)) == 0

    def written(*words: str) -> str:
        capsys.readouterr()
        assert write.main([str(folder), "the ", "--length=20", *words]) == 0
        return capsys.readouterr().out.removesuffix("\n")

    first, again, other = written(), written("--seed=0"), written("--seed=1")
    assert len(first) == 24 and first.startswith("the ") and first == again != other
    sizes, vocabulary = checkpoints.read(folder / "step-2")
    run = engine.Run(Options(**sizes, mode="none"), len(vocabulary.tokens))
    run.load(folder / "step-2")
    tokens = vocabulary.encode("the ").tolist()
    for _ in range(20):  # a plain loop, which reads no more than a window
        tokens.append(int(run.logits(np.array([tokens[-8:]]))[0, -1].argmax()))
    greedy = vocabulary.decode(tokens)
    assert written("--temperature=0") == written("--top-p=0.001") == greedy
    if library == "torch":  # within the window as attnbook.generate draws
        drawn = sample(run.model.eval(), vocabulary.encode("the "), 4, seed=5, top_p=0.9)
        assert vocabulary.decode(drawn) == written("--length=4", "--seed=5", "--top-p=0.9")
    for words, expected in (
        ([folder, "the é"], "text: got 'é', expected characters of"),
        ([folder, ""], "prompt: got no tokens, expected at least one"),
        ([tmp_path / "none", "the "], "folder: got no complete checkpoint in"),
    ):
        assert write.main(list(map(str, words))) == 2
        assert expected in capsys.readouterr().err
    with pytest.raises(SystemExit):
        write.main([str(folder), "the ", "--top-p=0"])
    assert "--top-p: got 0, expected a number above 0, at most 1" in capsys.readouterr().err
