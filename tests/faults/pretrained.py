"""Mistakes in the readers of published models."""

from faults.fault import faults

FAULTS = faults(r"""
pretrained/encoders | torch | pretrained/test_pretrained_models.py::test_tokens[BERT-torch]
    padding read | keys = None⟦ if mask is None else mask[..., None, :]→⟧
    an embedding without its norm | x = ⟦apply_norm(model.embedding_norm, x)→x + 0⟧
pretrained/encoders | torch | pretrained/test_pretrained_models.py::test_images[ViT-torch]
    the class token behind | xp.concat([⟦first, x→x, first⟧], axis=-2)
    pixels before channels | xp.moveaxis(x, ⟦(-4, -2), (-5, -4)→(-4, -2, -1), (-5, -4, -3)⟧)
pretrained/bert | torch | pretrained/test_pretrained_models.py::test_tokens[BERT-torch]
    no type of token | position⟦ + first→⟧
pretrained/gpt2 | torch | pretrained/test_pretrained_models.py::test_tokens[GPT-2-torch]
    keys before queries | ("⟦query", "key→key", "query⟧", "value")
pretrained/llama | torch | pretrained/test_pretrained_models.py::test_tokens[Llama-torch]
    pairs of keys apart | or ⟦".attention.key." in name→False⟧
pretrained/load | torch | pretrained/test_pretrained_models.py::test_tied
    the matrix twice | if ⟦id(empty) not in filled→True⟧:
""")
