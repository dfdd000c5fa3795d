"""The encoders of published models in JAX: parameters and initialisation."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from attnbook.jax import EncoderBlock
from attnbook.jax.transformer import make_blocks
from attnbook.models.config import BlockConfig
from attnbook.pretrained import encoders


class MaskedHead(eqx.Module):
    """What turns a stream into logits of masked tokens; the embedding's matrix comes after it."""

    dense: eqx.nn.Linear
    norm: eqx.nn.LayerNorm
    bias: Array

    def __init__(
        self, vocab_size: int, embedding_dim: int, embed_dim: int, eps: float, key: PRNGKeyArray
    ) -> None:
        self.dense = eqx.nn.Linear(embed_dim, embedding_dim, key=key)
        self.norm = eqx.nn.LayerNorm(embedding_dim, eps=eps)
        self.bias = jnp.zeros(vocab_size)


class TextEncoder(eqx.Module):
    """BERT or ALBERT; its formula is attnbook.pretrained.encoders.text_encoder.

    Args:
        vocab_size: how many different tokens there are.
        max_length: of a sequence.
        embedding_dim: the width of the embedding; where it is not embed_dim, a matrix widens it.
        embed_dim: the width of the stream.
        num_heads: in each block, a divisor of embed_dim.
        mlp_dim: the width inside each MLP.
        num_layers: how often a block acts.
        shared: whether one block acts as often as there are layers.
        widened: whether a matrix stands between embedding and stream.
        masked_head: whether logits of masked tokens come out.
        activation: of the MLPs, as in EncoderBlock.
        eps: of the norms.
        key: the random key of the initial parameters.
    """

    embedding: eqx.nn.Embedding
    position: Array
    embedding_norm: eqx.nn.LayerNorm
    widen: eqx.nn.Linear | None
    encoder: tuple[EncoderBlock, ...]
    head: MaskedHead | None
    vocab_size: int = eqx.field(static=True)
    max_length: int = eqx.field(static=True)
    num_layers: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)

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
        shared: bool,
        widened: bool,
        masked_head: bool,
        activation: str,
        eps: float,
        key: PRNGKeyArray,
    ) -> None:
        keys = jax.random.split(key, 4)
        self.vocab_size, self.max_length, self.num_layers = vocab_size, max_length, num_layers
        self.activation = activation
        self.embedding = eqx.nn.Embedding(vocab_size, embedding_dim, key=keys[0])
        self.position = jnp.zeros((max_length, embedding_dim))
        self.embedding_norm = eqx.nn.LayerNorm(embedding_dim, eps=eps)
        self.widen = eqx.nn.Linear(embedding_dim, embed_dim, key=keys[1]) if widened else None
        config = BlockConfig(
            embed_dim, num_heads, mlp_dim, norm="post", activation=activation, eps=eps
        )
        self.encoder = make_blocks(EncoderBlock, config, 1 if shared else num_layers, keys[2])
        self.head = None
        if masked_head:
            self.head = MaskedHead(vocab_size, embedding_dim, embed_dim, eps, keys[3])

    def __call__(
        self,
        tokens: Int[Array, "... n"],
        return_weights: bool = False,
        *,
        mask: Bool[Array, "... n"] | None = None,
    ) -> Any:
        """Logits (..., n, vocab_size), or the stream (..., n, embed_dim) without a head."""
        return encoders.text_encoder(self, tokens, mask, return_weights)


class ImageEncoder(eqx.Module):
    """A vision transformer; its formula is attnbook.pretrained.encoders.image_encoder.

    Args:
        image_size: the side of an image.
        patch_size: the side of a patch, a divisor of image_size.
        num_channels: of an image.
        num_classes: of the classifier; None without one.
        embed_dim: the width of the stream.
        num_heads: in each block, a divisor of embed_dim.
        mlp_dim: the width inside each MLP.
        num_layers: the number of blocks.
        activation: of the MLPs, as in EncoderBlock.
        eps: of the norms.
        key: the random key of the initial parameters.
    """

    embedding: eqx.nn.Linear
    class_token: Array
    position: Array
    encoder: tuple[EncoderBlock, ...]
    encoder_norm: eqx.nn.LayerNorm
    readout: eqx.nn.Linear | None
    image_size: int = eqx.field(static=True)
    patch_size: int = eqx.field(static=True)
    num_channels: int = eqx.field(static=True)

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_channels: int,
        num_classes: int | None,
        embed_dim: int,
        num_heads: int,
        mlp_dim: int,
        num_layers: int,
        *,
        activation: str,
        eps: float,
        key: PRNGKeyArray,
    ) -> None:
        keys = jax.random.split(key, 3)
        self.image_size, self.patch_size, self.num_channels = image_size, patch_size, num_channels
        patches = (image_size // patch_size) ** 2
        self.embedding = eqx.nn.Linear(num_channels * patch_size**2, embed_dim, key=keys[0])
        self.class_token = jnp.zeros(embed_dim)
        self.position = jnp.zeros((1 + patches, embed_dim))
        self.encoder = make_blocks(
            EncoderBlock,
            BlockConfig(embed_dim, num_heads, mlp_dim, activation=activation, eps=eps),
            num_layers,
            keys[1],
        )
        self.encoder_norm = eqx.nn.LayerNorm(embed_dim, eps=eps)
        self.readout = None
        if num_classes is not None:
            self.readout = eqx.nn.Linear(embed_dim, num_classes, key=keys[2])

    def __call__(
        self, images: Float[Array, "... channels height width"], return_weights: bool = False
    ) -> Any:
        """Logits (..., num_classes), or the stream (..., 1 + patches, embed_dim)."""
        return encoders.image_encoder(self, images, return_weights)
