"""Drawings of published models: labels are those of options, weights those that are drawn."""

import inspect
import re
from dataclasses import fields

import numpy as np
import pytest

from attnbook import softmax
from attnbook_course import drawings
from attnbook_course.drawings import published
from attnbook_course.live import weights

OTHER = drawings.Published("Other", 7, 8, 2, activation="relu", rms_norm=True, rotary_base=1e4)


def columns(drawing):
    """The labels of each of three columns, from the bottom up."""
    places = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"', drawing.svg)
    found = [[], [], []]
    for (x, y), text in zip(places, drawing.texts, strict=True):
        if float(y) < 770:  # below stands what the marks mean
            found[int(float(x) // 160)].append((-float(y), text))
    return [[text for _, text in sorted(column)] for column in found]


def marked(drawing):
    """The labels that tell a difference, of all columns."""
    return set(re.findall(r'--drawing-weights[^>]*font-weight="600">([^<]+)<', drawing.svg))


def test_the_boxes_have_each_models_options():
    gpt2, smollm2, bert = columns(drawings.published_blocks())
    assert "; ".join(gpt2) == (
        "biases; 12 blocks; GPT-2; + places; embedding; layer norm; 12 heads; attention; causal; "
        "layer norm; GELU (tanh); MLP; layer norm; tied; readout; next token"
    )
    assert "; ".join(smollm2) == (
        "no biases; 30 blocks; SmolLM2; no table; embedding; RMS norm; rotary q, k; 3 of k and v; "
        "9 heads; attention; causal; RMS norm; SwiGLU; gated MLP; RMS norm; tied; readout; "
        "next token"
    )
    assert "; ".join(bert) == (
        "biases; 12 blocks; BERT; + places; embedding; layer norm; 12 heads; to all tokens; "
        "attention; layer norm; GELU; MLP; layer norm; hidden states"
    )


def test_another_models_options_are_its_own():
    drawing = drawings.published_blocks([OTHER, published.BERT, drawings.Published("Ours", 2, 4)])
    other, _, ours = columns(drawing)
    assert {"7 blocks", "8 heads", "2 of k and v", "ReLU", "RMS norm", "biases"} < set(other)
    assert "tied" not in other and "readout" in other
    assert ours[-4:] == ["MLP", "layer norm", "readout", "next token"]


def test_marked_is_what_decoder_only_has_otherwise():
    torch_layers = pytest.importorskip("attnbook.torch")
    defaults = inspect.signature(torch_layers.DecoderOnly).parameters
    for field in fields(drawings.Published):
        if field.name in defaults and field.name not in ("num_layers", "num_heads"):
            assert field.default == defaults[field.name].default, field.name
    ours = drawings.Published("Ours", 2, 4)
    legend = {"not the default of DecoderOnly"}
    assert marked(drawings.published_blocks([ours] * 3)) == legend
    other = {
        "no biases",
        "no table",
        "RMS norm",
        "rotary q, k",
        "3 of k and v",
        "gated MLP",
        "SwiGLU",
        "tied",
    }
    assert marked(drawings.published_blocks([ours, ours, published.SMOLLM2])) == legend | other


def test_smollm2_has_the_heads_whose_weights_are_stored():
    model = published.SMOLLM2
    assert weights.load("smollm2").sentences[0].shape == (model.num_layers, model.num_heads)


def test_induction_in_depth_copies_what_followed():
    texts = drawings.induction_in_depth().texts
    *first, last = "river", "lamp", "coat", "bread", "river"
    assert texts.count("find lamp") == 1
    assert texts[-4:] == ("lamp", "predicts", "later layers", "say lamp")
    for word, before in zip([*first, last], ["–", *first], strict=True):
        assert word in texts and before in texts
    heads = {"17.1", "18.4", "18.5", "18.6", "19.7"}
    assert heads <= set(texts) and {"1", "18", "19", "30"} <= set(texts)
    other = drawings.induction_in_depth(12, writer="2.3", readers=["5.6"])
    assert {"2.3", "5.6", "5", "12"} <= set(other.texts)
    assert not heads & set(other.texts)


@pytest.mark.parametrize("question", [30, 7])
def test_the_answer_is_the_average_that_is_drawn(question):
    pairs = [(31, 52), (7, 80), (29, 47)]
    texts = drawings.prompt_of_pairs(question, pairs, same=0.6, other=0.1).texts
    scores = np.array([np.log(0.6 if x // 10 == question // 10 else 0.1) for x, _ in pairs])
    shares = softmax(scores)
    average = sum(w * y for w, (_, y) in zip(shares, pairs, strict=True))
    assert [t for t in texts if re.fullmatch(r"0\.\d\d", t)] == [f"{w:.2f}" for w in shares]
    assert texts[-2].endswith(f" ≈ {average:.0f}")
    tokens = "".join(t for t in texts if len(t) == 1)
    expected = "⏎".join(f"x=␣{x:02d},y=␣{y:02d}" for x, y in pairs)
    assert tokens == f"{expected}⏎x=␣{question:02d},y=␣{str(average)[0]}"
