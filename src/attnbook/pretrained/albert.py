"""ALBERT: an encoder whose one block acts in every layer."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from attnbook._validation import check_tokens
from attnbook.layers.activations import ACTIVATIONS
from attnbook.pretrained.checkpoint import Config, Tensors
from attnbook.torch import EncoderBlock

PARTS = {  # of the block by the book's names
    "attention.query": "attention.query",
    "attention.key": "attention.key",
    "attention.value": "attention.value",
    "attention.output": "attention.dense",
    "attention_norm": "attention.LayerNorm",
    "mlp.hidden": "ffn",
    "mlp.output": "ffn_output",
    "mlp_norm": "full_layer_layer_norm",
}


class MaskedHead(nn.Module):
    """What turns a stream into logits of masked tokens; the embedding's matrix comes after it."""

    def __init__(self, vocab_size: int, embedding_dim: int, embed_dim: int, eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(embed_dim, embedding_dim)
        self.norm = nn.LayerNorm(embedding_dim, eps=eps)
        self.bias = nn.Parameter(torch.zeros(vocab_size))


class Albert(nn.Module):
    """ALBERT: one "post" block, again and again, over A norm(E[token] + P[position]).

    The embedding E is narrower than the stream, and the matrix A widens it. With a head of masked
    tokens the result is logits, E norm(φ(W x + b)) + c with the same E.

    Args:
        vocab_size: how many different tokens there are.
        max_length: of a sequence.
        embedding_dim: the width of the embedding.
        embed_dim: the width of the stream.
        num_heads: of the block, a divisor of embed_dim.
        mlp_dim: the width inside its MLP.
        num_layers: how often it acts.
        masked_head: whether logits of masked tokens come out.
        activation: φ, also of the MLP, as in EncoderBlock.
        eps: of the norms.

    Source: Lan et al. (2020), section 3.1; the head is that of Devlin et al. (2019), section 3.
    """

    def __init__(
        self,
        vocab_size: int,
        max_length: int,
        embedding_dim: int,
        embed_dim: int,
        num_heads: int,
        mlp_dim: int,
        num_layers: int,
        *,
        masked_head: bool,
        activation: str,
        eps: float,
    ) -> None:
        super().__init__()
        self.vocab_size, self.max_length, self.num_layers = vocab_size, max_length, num_layers
        self.activation = activation
        self.embedding = nn.Embedding(vocab_size, embedding_dim)
        self.position = nn.Parameter(torch.zeros(max_length, embedding_dim))
        self.embedding_norm = nn.LayerNorm(embedding_dim, eps=eps)
        self.widen = nn.Linear(embedding_dim, embed_dim)
        self.block = EncoderBlock(
            embed_dim, num_heads, mlp_dim, norm="post", activation=activation, eps=eps
        )
        self.head = MaskedHead(vocab_size, embedding_dim, embed_dim, eps) if masked_head else None

    def forward(self, tokens: Int[Tensor, "... n"], return_weights: bool = False) -> Any:
        """Logits (..., n, vocab_size), or the stream (..., n, embed_dim) without a head.

        With return_weights the pair of it and the weights (..., heads, n, n) of every layer.
        """
        check_tokens(self.vocab_size, self.max_length, tokens=tokens)
        x = self.embedding(tokens) + self.position[: tokens.shape[-1]]
        x = self.widen(self.embedding_norm(x))
        weights = []
        for _ in range(self.num_layers):
            x, w = self.block(x, return_weights=True)
            weights.append(w)
        if self.head is not None:
            x = self.head.norm(ACTIVATIONS[self.activation](self.head.dense(x)))
            x = x @ self.embedding.weight.mT + self.head.bias
        return (x, weights) if return_weights else x


def albert(config: Config, tensors: Tensors) -> Albert:
    """ALBERT and models of its architecture; all tokens are of the first type, type 0.

    A file with the head of masked tokens gives logits, one without it the stream. What is pooled
    for whole sentences is left out.
    """
    config.supported("num_hidden_groups", [1], 1)
    config.supported("inner_group_num", [1], 1)
    config.supported("position_embedding_type", ["absolute"], "absolute")
    width, longest = config.size("embedding_size", 128), config.size("max_position_embeddings", 512)
    model: Albert = config.empty(
        Albert,
        vocab_size=config.size("vocab_size"),
        max_length=longest,
        embedding_dim=width,
        embed_dim=config.size("hidden_size"),
        num_heads=config.size("num_attention_heads"),
        mlp_dim=config.size("intermediate_size"),
        num_layers=config.size("num_hidden_layers"),
        masked_head="predictions.bias" in tensors.left,
        activation=config.activation("hidden_act", "gelu_new"),
        eps=config.positive("layer_norm_eps", 1e-12),
    )
    start = tensors.prefix("albert.")
    tensors.drop("*pooler.*", "sop_classifier.*", "*.position_ids")
    words, block = f"{start}embeddings.", f"{start}encoder.albert_layer_groups.0.albert_layers.0."
    types = config.size("type_vocab_size", 2)
    first = tensors.take(f"{words}token_type_embeddings.weight", types, width)[0]
    found = {
        "embedding.weight": tensors.take(f"{words}word_embeddings.weight", model.vocab_size, width),
        "position": first + tensors.take(f"{words}position_embeddings.weight", longest, width),
    }
    if model.head is not None:
        found["head.bias"] = tensors.take("predictions.bias", model.vocab_size)
        tensors.drop_copy("predictions.decoder.bias", found["head.bias"])
        tensors.drop_copy("predictions.decoder.weight", found["embedding.weight"])
    layers = {
        "embedding_norm": f"{words}LayerNorm",
        "widen": f"{start}encoder.embedding_hidden_mapping_in",
        "head.dense": "predictions.dense",
        "head.norm": "predictions.LayerNorm",
    }
    layers |= {f"block.{part}": block + name for part, name in PARTS.items()}
    filled: Albert = tensors.fill(model, layers, found)
    return filled
