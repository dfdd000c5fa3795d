"""Random models of Hugging Face's library, saved as it saves them: the referee of attnbook.pretrained."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

EAGER = {"attn_implementation": "eager"}
BLOCKS: dict[str, Any] = dict(hidden_size=48, num_hidden_layers=3, intermediate_size=96)
BLOCKS |= dict(vocab_size=300, max_position_embeddings=64) | EAGER
GPT2: dict[str, Any] = dict(vocab_size=300, n_positions=64, n_embd=48, n_layer=3, n_head=4)
GPT2 |= dict(bos_token_id=0, eos_token_id=0) | EAGER
LLAMA = BLOCKS | {"num_attention_heads": 6, "num_key_value_heads": 2}
FAR = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e5}}
ALBERT = BLOCKS | {"num_attention_heads": 4, "embedding_size": 12}

DECODERS = {  # the class, and what it is made with
    "GPT-2": ("GPT2LMHeadModel", GPT2),
    "Llama": ("LlamaForCausalLM", LLAMA | FAR | {"tie_word_embeddings": True}),
    "Llama, untied": ("LlamaForCausalLM", LLAMA | {"num_key_value_heads": 6}),
}
ENCODERS = {
    "ALBERT": ("AlbertModel", ALBERT),
    "ALBERT, masked tokens": ("AlbertForMaskedLM", ALBERT | {"hidden_act": "gelu"}),
}
MODELS = DECODERS | ENCODERS


def make(name: str) -> Any:
    """A model with random parameters, none of them 0 or 1 as a fresh norm's or bias's are."""
    kind, options = MODELS[name]
    model_class = getattr(transformers, kind)
    torch.manual_seed(0)
    model = model_class(model_class.config_class(**options)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def save(model: Any, folder: Path) -> Path:
    """As the library saves it: config.json and model.safetensors."""
    model.save_pretrained(folder)
    return folder
