"""Byte pairs: the same numbers as the library tokenizers gives, and the same text back."""

from __future__ import annotations

import json

import published
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnbook import datasets
from attnbook.pretrained import tokens_from_folder, tokens_from_gguf
from attnbook.train.byte_pairs import SIGNS, BytePairs

pytest.importorskip("gguf")
tokenizers = pytest.importorskip("tokenizers")

from gguf_files import write_gguf  # noqa: E402

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_start|>x", "<pad>"]
TEXTS = [
    "A weighted average is the answer. In 1964 Nadaraya wrote y = Σ wᵢ yᵢ / Σ wᵢ.",
    "def attend(q, k, v):\n    s = q @ k.T / math.sqrt(q.shape[-1])\n\treturn softmax(s) @ v  # 3.14",
    "It's 'Tis I'LL we'RE o'clock 'em don't we'll ' ''",
    "Çà et là, naïve façade — «été» e\u0301te\u0301 東京 is Tokyo; Привет, мир! नमस्ते ไทย",
    "1²½Ⅷ一二三 ٣٤ 2,718 a²b ①x  ² x₁",
    "🤖 👩\u200d👩\u200d👧 🇨🇭 snake_case __init__ _a_ a_b",
    "   three spaces\n\n\n  \r\n\tend \x85\u00a0\u2003\u200b\u3000\u2028 ",
    "<|im_start|>user\nHi<|endoftext|><|im_start|>x <|im_start <pad><pad>",
    "",
    " ",
]
any_text = st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=40)


def cutter(kind):
    """How the library tokenizers cuts a text for each kind of model."""
    pre = tokenizers.pre_tokenizers
    plain = pre.ByteLevel(add_prefix_space=False, use_regex=True)
    return plain if kind == "gpt-2" else pre.Sequence([pre.Digits(individual_digits=True), plain])


@pytest.fixture(scope="module", params=["gpt-2", "smollm"])
def trained(request, tmp_path_factory):
    """A small encoding that the library tokenizers trained, and the folder that it is saved in."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = cutter(request.param)
    text = datasets.python_reference()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=SPECIAL,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([text.decode(text.train[:40_000]), *TEXTS], trainer)
    folder = tmp_path_factory.mktemp(request.param)
    made.save(str(folder / "tokenizer.json"))
    return made, folder


@pytest.fixture(scope="module")
def pairs(trained):
    return tokens_from_folder(trained[1])


def same(referee, pairs, text):
    """The referee's numbers, with special tokens and without, and the text back."""
    for split in (False, True):
        referee.encode_special_tokens = split
        expected = referee.encode(text, add_special_tokens=False).ids
        assert pairs.encode(text, split_special_tokens=split) == expected, repr(text)
    assert pairs.decode(expected) == text


@settings(deadline=None, max_examples=100, derandomize=True)
@given(text=any_text)
def test_any_text(trained, pairs, text):
    same(trained[0], pairs, text)


def said(folder):
    return json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))


def as_gguf(file, trained, **changes):
    """The trained encoding as llama.cpp keeps it; what is empty is left out."""
    made, folder = trained
    names = sorted(made.get_vocab(), key=made.get_vocab().__getitem__)
    fields = {
        "model": "gpt2",
        "pre": folder.name.removesuffix("0"),
        "tokens": names,
        "merges": [" ".join(pair) for pair in said(folder)["model"]["merges"]],
        "token_type": [3 if name in SPECIAL else 1 for name in names],
    } | changes
    return write_gguf(file, {f"tokenizer.ggml.{n}": value for n, value in fields.items() if value})


def test_difficult_texts(trained, pairs, tmp_path):
    """From either kind of file; unasked, a special token is refused."""
    for read in (pairs, tokens_from_gguf(as_gguf(tmp_path / "tokens.gguf", trained))):
        for text in TEXTS:
            same(trained[0], read, text)
        with pytest.raises(ValueError, match=r"text: got the special token '<.*', expected split_"):
            read.encode("Hi<pad>")


GGUF = [
    ({"model": "llama"}, "got tokens of kind llama, cut as smollm, expected gpt2, cut as gpt-2"),
    ({"pre": "tekken"}, "got tokens of kind gpt2, cut as tekken"),
    ({"merges": []}, r"expected tokens and merges of byte pairs \('tokenizer\.ggml\.merges'"),
    ({"merges": ["a b c"]}, "merges: got .*, expected two tokens"),
]
FOLDER = [
    ({"model": {"type": "WordPiece"}}, "got WordPiece after the normaliser None, expected BPE"),
    ({"normalizer": {"type": "NFC"}}, "got BPE after the normaliser .*NFC.*, expected BPE of"),
    ({"model": {"type": "BPE", "byte_fallback": True}}, "got tokens with byte_fallback, expected"),
    ({"added_tokens": [{"id": 0, "content": "<s>", "lstrip": True}]}, "got tokens with lstrip"),
    ({"model": {"type": "BPE", "vocab": {"a": 1}}}, "got other numbers of tokens, expected 0 to"),
    ({"model": {"type": "BPE"}}, "expected tokens and merges of byte pairs .'vocab'"),
    ({"pre_tokenizer": {"type": "Metaspace"}}, "got text cut by .*Metaspace"),
]


@pytest.mark.parametrize("trained", ["smollm"], indirect=True)
def test_no_byte_pairs(trained, tmp_path):
    for changes, message in GGUF:
        file = as_gguf(tmp_path / "tokens.gguf", trained, **changes)
        with pytest.raises(ValueError, match=rf"tokens\.gguf: .*{message}"):
            tokens_from_gguf(file)
    with pytest.raises(FileNotFoundError, match=r"tokenizer\.json: there is no such file"):
        tokens_from_folder(tmp_path)
    before = said(trained[1]) | {"added_tokens": []}
    for changes, message in FOLDER:
        (tmp_path / "tokenizer.json").write_text(json.dumps(before | changes), encoding="utf-8")
        with pytest.raises(ValueError, match=rf"tokenizer\.json: .*{message}"):
            tokens_from_folder(tmp_path)


def test_by_hand():
    """Merges in the order of their list, not of the text, and each pair everywhere at once."""
    merges = [("l", "l"), ("h", "e"), ("he", "ll"), ("hell", "o"), ("o", "o"), ("Ġ", "hello")]
    pairs = BytePairs([*SIGNS, *map("".join, merges)], merges)
    steps = ["h e l l o", "h e ll o", "he ll o", "hell o", "hello"]
    assert list(pairs.merges("hello")) == [step.split() for step in steps]
    assert list(pairs.merges("ooooo"))[1:] == [["oo", "oo", "o"]]
    assert pairs.words("hello hello  12!") == ["hello", " hello", " ", " 12", "!"]
    assert pairs.decode([0xC3]) == "�"  # the first byte of two
    assert pairs.decode([0xC3, 0xA9]) == "é"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": ["a", "b", "a"]}, "tokens: got 'a' twice, expected different ones"),
        ({"merges": [("a", "b")]}, "merges, special: got 'ab', expected one of"),
        ({"special": ["<x>"]}, "got '<x>', expected one of the tokens"),
    ],
)
def test_what_byte_pairs_cannot_be_made_of(changes, message):
    with pytest.raises(ValueError, match=message):
        BytePairs(**({"tokens": ["a", "b", "c"], "merges": []} | changes))


def test_wrong_arguments():
    pairs = BytePairs(SIGNS[:200], [])
    with pytest.raises(ValueError, match="text: got byte 0xe6 in '東京', expected bytes for which"):
        pairs.encode("東京")
    with pytest.raises(ValueError, match="numbers: got 1 to 200, expected 0 to 199"):
        pairs.decode([1, 200])


def test_smollm2():
    """The published tokens: difficult texts as the library tokenizers reads them."""
    pairs = tokens_from_gguf(published.smollm2())
    assert len(pairs.tokens) == 49152 and len(pairs.special) == 17
    referee = tokenizers.Tokenizer(tokenizers.models.BPE(pairs.number, list(pairs.rank)))
    referee.pre_tokenizer = cutter("smollm")
    referee.add_special_tokens(pairs.special)
    for text in [*TEXTS, "<|im_start|>user\nHi there<|im_end|>\n"]:
        same(referee, pairs, text)
