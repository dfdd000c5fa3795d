"""GPT-2 in the book's DecoderOnly."""

from typing import Any

from attnbook._validation import int_between
from attnbook.pretrained.checkpoint import Config, Tensors

PARTS = {  # of a block by the book's names
    "attention.query": "attn.query",
    "attention.key": "attn.key",
    "attention.value": "attn.value",
    "attention.output": "attn.c_proj",
    "mlp.hidden": "mlp.c_fc",
    "mlp.output": "mlp.c_proj",
    "attention_norm": "ln_1",
    "mlp_norm": "ln_2",
}
TURNED = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")  # matrices that act as x W


def gpt2(config: Config, tensors: Tensors, max_length: int | None = None) -> Any:
    """GPT-2 and models of its architecture: a DecoderOnly with learned positions.

    Its blocks are the book's "pre" blocks with biases. Queries, keys and values lie in one matrix
    there, and matrices act from the right, x W: both are undone.

    Source: Radford et al. (2019), section 2.3.
    """
    from attnbook.torch import DecoderOnly

    config.supported("scale_attn_weights", [True], True)
    config.supported("scale_attn_by_inverse_layer_idx", [False], False)
    config.supported("tie_word_embeddings", [True], True)
    e, longest = config.size("n_embd"), config.size("n_positions")
    shorter = longest if max_length is None else int_between(1, longest, max_length=max_length)
    model = config.empty(
        DecoderOnly,
        vocab_size=config.size("vocab_size"),
        max_length=shorter,
        embed_dim=e,
        num_heads=config.size("n_head"),
        mlp_dim=config.size("n_inner", 4 * e),
        num_layers=config.size("n_layer"),
        activation=config.activation("activation_function", "gelu_new"),
        eps=config.positive("layer_norm_epsilon", 1e-5),
        tied=True,
    )
    start = tensors.prefix("transformer.")
    tensors.drop("*.attn.bias", "*.attn.masked_bias")  # masks
    layers = {"embedding": f"{start}wte", "decoder_norm": f"{start}ln_f", "readout": "lm_head"}
    for i in range(model.num_layers):
        there = f"{start}h.{i}."
        for name in (f"{there}{layer}.weight" for layer in TURNED):
            if name in tensors.left:
                tensors.left[name] = tensors.left[name].T
        for last, shape in (("weight", (3 * e, e)), ("bias", (3 * e,))):
            parts = [f"{there}attn.{part}.{last}" for part in ("query", "key", "value")]
            tensors.split(f"{there}attn.c_attn.{last}", shape, parts)
        layers |= {f"decoder.{i}.{part}": f"{there}{name}" for part, name in PARTS.items()}
    position = tensors.take(f"{start}wpe.weight", longest, e)[:shorter]
    return tensors.fill(model, layers, {"position": position})
