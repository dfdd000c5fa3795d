"""Mistakes in the readers of published models."""

from __future__ import annotations

from faults.fault import faults

MODELS = "pretrained/test_pretrained_models.py"
FAULTS = [
    *faults("pretrained/encoders", "torch", f"{MODELS}::test_tokens[BERT-torch]",
        ("padding read", "keys = None if mask is None else mask[..., None, :]", "keys = None"),
        ("an embedding without its norm", "x = apply_norm(model.embedding_norm, x)", "x = x + 0"),
    ),
    *faults("pretrained/encoders", "torch", f"{MODELS}::test_images[ViT-torch]",
        ("the class token behind", "xp.concat([first, x], axis=-2)", "xp.concat([x, first], axis=-2)"),
        ("pixels before channels", "xp.moveaxis(x, (-4, -2), (-5, -4))", "xp.moveaxis(x, (-4, -2, -1), (-5, -4, -3))"),
    ),
    *faults("pretrained/bert", "torch", f"{MODELS}::test_tokens[BERT-torch]",
        ("no type of token", "position + first", "position"),
    ),
    *faults("pretrained/gpt2", "torch", f"{MODELS}::test_tokens[GPT-2-torch]",
        ("keys before queries", '("query", "key", "value")', '("key", "query", "value")'),
    ),
    *faults("pretrained/llama", "torch", f"{MODELS}::test_tokens[Llama-torch]",
        ("pairs of keys apart", 'or ".attention.key." in name', "or False"),
    ),
    *faults("pretrained/load", "torch", f"{MODELS}::test_tied",
        ("the matrix twice", "if id(empty) not in filled:", "if True:"),
    ),
]  # fmt: skip
