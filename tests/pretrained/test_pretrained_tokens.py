"""Byte pairs: the same numbers as the library tokenizers gives, and the same text back."""

from __future__ import annotations

import json
import unicodedata

import published
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnbook import datasets
from attnbook.pretrained.tokens import tokens_from_folder, tokens_from_gguf
from attnbook.train import byte_pairs
from attnbook.train.byte_pairs import BytePairs

pytest.importorskip("gguf")
tokenizers = pytest.importorskip("tokenizers")

from gguf_files import write_gguf  # noqa: E402

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_start|>x", "<pad>"]
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEXTS = [
    "A weighted average is the answer. In 1964 Nadaraya wrote y = Σ wᵢ yᵢ / Σ wᵢ.",
    "def attend(q, k, v):\n    s = q @ k.T / math.sqrt(q.shape[-1])\n\treturn softmax(s) @ v  # 3.14159",
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
    signs = pre.ByteLevel(add_prefix_space=False, use_regex=False)
    return {
        "gpt-2": plain,
        "smollm": pre.Sequence([pre.Digits(individual_digits=True), plain]),
        "qwen2": pre.Sequence([pre.Split(tokenizers.Regex(QWEN2), "isolated"), signs]),
    }[kind]


@pytest.fixture(scope="module", params=["gpt-2", "smollm", "qwen2"])
def trained(request, tmp_path_factory):
    """A small encoding that the library tokenizers trained, and the folder that it is saved in."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = cutter(request.param)
    if request.param == "qwen2":
        made.normalizer = tokenizers.normalizers.NFC()
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
    """The referee's numbers, with special tokens and without; unasked, one is refused."""
    for split in (False, True):
        referee.encode_special_tokens = split
        expected = referee.encode(text, add_special_tokens=False).ids
        assert pairs.encode(text, split_special_tokens=split) == expected, repr(text)
    if any(one in text for one in pairs.special):
        with pytest.raises(ValueError, match=r"text: got the special token '<.*', expected split_"):
            pairs.encode(text)
    else:
        assert pairs.encode(text) == expected


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_difficult_texts(trained, pairs, text):
    same(trained[0], pairs, text)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(text=any_text)
def test_any_text(trained, pairs, text):
    """The referee's numbers, and the text back; of a kind with a normal form, the text in it."""
    same(trained[0], pairs, text)
    back = pairs.decode(pairs.encode(text, split_special_tokens=True))
    form = pairs.normal_form
    assert back == (unicodedata.normalize(form, text) if form else text)


def test_two_files_of_gpt2(trained, tmp_path):
    made, folder = trained
    made.model.save(str(tmp_path))
    found, expected = tokens_from_folder(tmp_path), tokens_from_folder(folder)
    same_encoding(found, expected)
    assert found.special == ["<|endoftext|>"]
    text = "a word<|endoftext|> <pad>"
    assert expected.decode(found.encode(text, split_special_tokens=False)) == text


def test_by_hand():
    """Merges in the order of their list, not of the text, and each pair everywhere at once."""
    merges = [("l", "l"), ("h", "e"), ("he", "ll"), ("hell", "o"), ("o", "o"), ("Ġ", "hello")]
    whole = ["".join(pair) for pair in merges]
    pairs = BytePairs([*byte_pairs.SIGNS, *whole], merges)
    assert list(pairs.merges("hello")) == [
        ["h", "e", "l", "l", "o"],
        ["h", "e", "ll", "o"],
        ["he", "ll", "o"],
        ["hell", "o"],
        ["hello"],
    ]
    assert list(pairs.merges("ooooo"))[1:] == [["oo", "oo", "o"]]
    assert pairs.words("hello hello  12!") == ["hello", " hello", " ", " 12", "!"]
    assert [pairs.tokens[i] for i in pairs.encode(" hello hello!")] == ["Ġhello", "Ġhello", "!"]
    assert pairs.encode("\n") == [10]
    assert pairs.decode([0xC3]) == "�"  # the first byte of two
    assert pairs.decode([0xC3, 0xA9]) == "é"


def test_signs():
    """GPT-2's: a byte that is seen in print is its own sign, the others follow from 256."""
    assert len({*byte_pairs.SIGNS}) == 256
    assert [byte_pairs.SIGNS[b] for b in (0, 9, 10, 32, 33, 126, 127, 160, 161, 173, 255)] == [
        *("Ā", "ĉ", "Ċ", "Ġ", "!", "~", "ġ", "ł", "¡", "Ń", "ÿ"),
    ]
    assert {*byte_pairs.SIGNS} == {*tokenizers.pre_tokenizers.ByteLevel.alphabet()}


def test_wrong_arguments():
    pairs = BytePairs(byte_pairs.SIGNS[:200], [])
    with pytest.raises(ValueError, match="text: got byte 0xe6 in '東京', expected bytes for which"):
        pairs.encode("東京")
    with pytest.raises(ValueError, match=r"text: got '\\ud800', expected characters of Unicode"):
        pairs.encode("\ud800")
    with pytest.raises(ValueError, match="text: got a bytes, expected a string"):
        pairs.encode(b"x")
    with pytest.raises(ValueError, match="split_special_tokens: got 'yes', expected True or False"):
        pairs.encode("x", split_special_tokens="yes")
    for number, got in ((-1, "-1 to 1"), (200, "1 to 200")):
        with pytest.raises(ValueError, match=f"numbers: got {got}, expected 0 to 199"):
            pairs.decode([1, number])
    for numbers in ([1.5], 3, [[1, 2]], "12"):
        with pytest.raises(ValueError, match=r"numbers: got .*expected integers of shape \(n,\)"):
            pairs.decode(numbers)
    with pytest.raises(ValueError, match="merges: got 'ab' in a pair, expected tokens"):
        BytePairs(["a", "b"], [("a", "b")])
    with pytest.raises(ValueError, match="special: got '<x>', expected one of the tokens"):
        BytePairs(["a", "b"], [], special=["<x>"])


TWICE = {"tokens": ["a", "aa", "b", "ab"], "merges": [("a", "a"), ("a", "b"), ("a", "a")]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": "abc"}, "tokens: got 'abc', expected a list of strings"),
        ({"tokens": 3}, "tokens: got 3, expected a list of strings"),
        ({"tokens": ["a", 1]}, "tokens: got 1 among them, expected strings"),
        ({"tokens": ["a", "b", "a"]}, "tokens: got 'a' twice, expected different ones"),
        ({"merges": [(0, 1)]}, r"merges: got \(0, 1\), expected pairs of strings"),
        ({"merges": ["ab"]}, "merges: got 'ab', expected pairs of strings"),
        ({"merges": None}, "merges: got None, expected pairs of strings"),
        ({"merges": 3}, "merges: got 3, expected pairs of strings"),
        (TWICE, r"merges: got \('a', 'a'\) twice, expected different pairs"),
        ({"merges": [("a", "b", "c")]}, "merges: got .*, expected pairs of strings"),
        ({"special": "a"}, "special: got 'a', expected a list of strings"),
        ({"special": [0]}, "special: got 0 among them, expected strings"),
        ({"patterns": r"\\w+"}, "patterns: got .*, expected a list of strings"),
        ({"patterns": ["("]}, r"patterns: got '\(', expected a pattern \("),
        ({"patterns": [None]}, "patterns: got None among them, expected strings"),
        ({"normal_form": "NFX"}, "normal_form: got 'NFX', expected 'NFC', 'NFKC', 'NFD' or 'NFKD'"),
        ({"normal_form": 1}, "normal_form: got 1, expected"),
    ],
)
def test_what_byte_pairs_cannot_be_made_of(changes, message):
    with pytest.raises(ValueError, match=message):
        BytePairs(**({"tokens": ["a", "b", "c"], "merges": []} | changes))


def said(folder):
    return json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))


def as_gguf(file, trained, **changes):
    """The trained encoding as llama.cpp keeps it; what is empty is left out."""
    made, folder = trained
    names = sorted(made.get_vocab(), key=made.get_vocab().__getitem__)
    fields = {
        "model": "gpt2",
        "pre": "smollm",
        "tokens": names,
        "merges": [" ".join(pair) for pair in said(folder)["model"]["merges"]],
        "token_type": [3 if name in SPECIAL else 1 for name in names],
    } | changes
    return write_gguf(file, {f"tokenizer.ggml.{n}": value for n, value in fields.items() if value})


def same_encoding(found, expected):
    assert found.tokens == expected.tokens
    assert found.rank == expected.rank


@pytest.mark.parametrize("trained", ["gpt-2", "smollm"], indirect=True)
def test_gguf(trained, tmp_path):
    name = trained[1].name.removesuffix("0")
    found = tokens_from_gguf(as_gguf(tmp_path / "tokens.gguf", trained, pre=name))
    expected = tokens_from_folder(trained[1])
    same_encoding(found, expected)
    assert found.special == expected.special
    for text in TEXTS:
        same(trained[0], found, text)


@pytest.mark.parametrize("trained", ["smollm"], indirect=True)
def test_no_byte_pairs_in_gguf(trained, tmp_path):
    for changes, message in (
        (
            {"model": "llama"},
            "got tokens of kind llama, cut as smollm, expected gpt2, cut as gpt-2",
        ),
        ({"pre": "tekken"}, "got tokens of kind gpt2, cut as tekken"),
        ({"merges": []}, r"expected tokens and merges of byte pairs \('tokenizer\.ggml\.merges'"),
        ({"merges": ["a b c"]}, "merges: got 'a b c', expected two tokens"),
        ({"token_type": [1, 1]}, "expected tokens and merges"),
        ({"token_type": "1"}, "tokenizer.ggml.token_type: got '1', expected an array"),
        ({"tokens": "words"}, "tokenizer.ggml.tokens: got 'words', expected an array"),
        ({"tokens": [1, 2], "token_type": [1, 1]}, "tokens: got 1 among them, expected strings"),
        ({"merges": [1, 2]}, "merges: got 1, expected two tokens"),
        ({"pre": [1, 2]}, r"cut as \[1, 2\], expected gpt2"),
    ):
        file = as_gguf(tmp_path / "tokens.gguf", trained, **changes)
        with pytest.raises(ValueError, match=rf"tokens\.gguf: .*{message}"):
            tokens_from_gguf(file)


@pytest.mark.parametrize("trained", ["smollm"], indirect=True)
def test_no_byte_pairs_in_a_folder(trained, tmp_path):
    before = said(trained[1])
    model = before["model"]
    splits = [
        {"type": "Split", "pattern": {"Regex": cut}, "behavior": "Isolated"} for cut in (3, "(")
    ]
    for changes, message in (
        ({"model": {"type": "WordPiece"}}, "got tokens of kind WordPiece, expected BPE"),
        (
            {"model": model | {"byte_fallback": True}},
            "got tokens with byte_fallback, expected none",
        ),
        ({"model": model | {"merges": [["a"]]}}, "merges: got .'a'., expected two tokens"),
        ({"model": model | {"vocab": {"a": 1}}}, "got other numbers of tokens, expected 0 to"),
        ({"model": {"type": "BPE"}}, "vocab: got a NoneType, expected an object"),
        ({"model": {"type": "BPE", "vocab": {}}}, "merges: got a NoneType, expected a list"),
        ({"added_tokens": [{"id": 0, "content": "<s>", "lstrip": True}]}, "got tokens with lstrip"),
        ({"normalizer": {"type": "Lowercase"}}, "got the normaliser Lowercase, expected a form"),
        ({"pre_tokenizer": {"type": "Metaspace"}}, "got text cut by .*Metaspace"),
        ({"pre_tokenizer": None}, "got text cut by"),
        ({"model": []}, "model: got a list, expected an object"),
        ({"model": "BPE"}, "model: got a str, expected an object"),
        ({"added_tokens": {}}, "added_tokens: got a dict, expected a list"),
        ({"added_tokens": ["<s>"]}, "added_tokens: got '<s>', expected objects"),
        ({"added_tokens": [{"id": 0}]}, "expected tokens and merges of byte pairs .'content'"),
        ({"added_tokens": [{"content": "<s>", "id": None}]}, "got None as the number of '<s>'"),
        ({"added_tokens": [{"content": [], "id": 0}]}, "expected tokens and merges of byte pairs"),
        ({"model": model | {"vocab": ["a"]}}, "vocab: got a list, expected an object"),
        ({"model": model | {"vocab": {"a": 0.0}}}, "got 0.0 as the number of 'a', expected integ"),
        ({"model": model | {"vocab": {"a": True}}}, "got True as the number of 'a'"),
        ({"model": model | {"vocab": {"a": "0"}}}, "got '0' as the number of 'a'"),
        ({"model": model | {"merges": {"a": "b"}}}, "merges: got a dict, expected a list"),
        ({"model": model | {"merges": [3]}}, "merges: got 3, expected two tokens"),
        ({"model": model | {"merges": [[1, 2]]}}, r"merges: got \(1, 2\), expected pairs of str"),
        ({"normalizer": "NFC"}, "normalizer: got a str, expected an object"),
        ({"normalizer": {"type": ["NFC"]}}, "got the normaliser .'NFC'., expected a form"),
        ({"pre_tokenizer": "ByteLevel"}, "pre_tokenizer: got a str, expected an object"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": 3}}, "got text cut by"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [3]}}, "got text cut by 3"),
        ({"pre_tokenizer": splits[0]}, "got text cut by"),
        ({"pre_tokenizer": splits[1]}, r"patterns: got '\(', expected a pattern"),
    ):
        (tmp_path / "tokenizer.json").write_text(json.dumps(before | changes), encoding="utf-8")
        with pytest.raises(ValueError, match=rf"tokenizer\.json: .*{message}"):
            tokens_from_folder(tmp_path)


def test_missing_and_other_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected tokenizer\.json, or vocab\.json and"):
        tokens_from_folder(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no\.gguf: there is no such file"):
        tokens_from_gguf(tmp_path / "no.gguf")
    (tmp_path / "vocab.json").write_text('{"a": 0, "b": 1, "ab": 2}', encoding="utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n", encoding="utf-8")
    assert tokens_from_folder(tmp_path).encode("abab") == [2, 2]
    (tmp_path / "merges.txt").write_text("a b c\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"merges\.txt: expected .*merges: got 'a b c'"):
        tokens_from_folder(tmp_path)
    config = '{"tokenizer_class": "CTRLTokenizer"}'
    (tmp_path / "tokenizer_config.json").write_text(config, encoding="utf-8")
    with pytest.raises(ValueError, match=r"config\.json: got a CTRLTokenizer, expected GPT2Token"):
        tokens_from_folder(tmp_path)


def test_smollm2():
    """The published tokens: difficult texts as the library tokenizers reads them."""
    pairs = tokens_from_gguf(published.smollm2())
    assert len(pairs.tokens) == 49152
    assert len(pairs.special) == 17
    referee = tokenizers.Tokenizer(tokenizers.models.BPE(pairs.number, list(pairs.rank)))
    referee.pre_tokenizer = cutter("smollm")
    referee.add_special_tokens(pairs.special)
    for text in [*TEXTS, "<|im_start|>user\nHi there<|im_end|>\n"]:
        same(referee, pairs, text)
        assert pairs.decode(pairs.encode(text, split_special_tokens=True)) == text
    words = [pairs.tokens[i] for i in pairs.encode("A weighted average, 1964")]
    assert words == ["A", "Ġweighted", "Ġaverage", ",", "Ġ", "1", "9", "6", "4"]
    with pytest.raises(ValueError, match="text: got byte 0x04"):  # one of 21 without a token
        pairs.encode("\x04")
