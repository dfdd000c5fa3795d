"""The vision transformer in the book's encoder blocks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnbook.models.config import block_config
from attnbook.pretrained.checkpoint import Config, Recipe, Tensors, take_linear
from attnbook.pretrained.load import build

PARTS = {  # of a block by the book's names
    "attention.query": "attention.attention.query",
    "attention.key": "attention.attention.key",
    "attention.value": "attention.attention.value",
    "attention.output": "attention.output.dense",
    "attention_norm": "layernorm_before",
    "mlp.hidden": "intermediate.dense",
    "mlp.output": "output.dense",
    "mlp_norm": "layernorm_after",
}
VIT_HEADS = ("ViTModel", "ViTForImageClassification")


def vit(config: Mapping[str, Any], tensors: Mapping[str, Any], *, backend: str = "torch") -> Any:
    """A vision transformer: an ImageEncoder of "pre" blocks over patches and a class token.

    A file with a classifier gives logits of its classes, one without it the stream.

    Args:
        config: the entries of config.json.
        tensors: NumPy arrays by the names of the file.
        backend: "torch" or "jax".

    Returns:
        An ImageEncoder of that back end.

    Raises:
        ValueError: an entry that the blocks cannot compute; a tensor that is missing, of another
            shape, or unknown.

    Source: Dosovitskiy et al. (2021), section 3.1.
    """
    return build(vit_recipe, Config(config), Tensors(tensors), backend)


def vit_recipe(config: Config, tensors: Tensors) -> Recipe:
    """What vit makes, from checked entries and tensors."""
    biased = config.supported("qkv_bias", [True, False], True)
    e = config.size("hidden_size")
    options: dict[str, Any] = dict(
        **_pixels(config),
        num_classes=None,
        embed_dim=e,
        num_heads=config.divisor("num_attention_heads", e),
        mlp_dim=config.size("intermediate_size"),
        num_layers=config.size("num_hidden_layers"),
        activation=config.activation("hidden_act", "gelu"),
        eps=config.positive("layer_norm_eps", 1e-12),
    )
    start = tensors.prefix("vit.")
    tensors.drop("*pooler.*")
    found = {
        **_embeddings(tensors, f"{start}embeddings.", options),
        **take_linear(tensors, "encoder_norm", f"{start}layernorm", (e,)),
    }
    block = block_config(options)
    for i in range(options["num_layers"]):
        for part, there in PARTS.items():
            has = biased or part not in tuple(PARTS)[:3]
            mine, theirs = f"encoder.{i}.{part}", f"{start}encoder.layer.{i}.{there}"
            found |= take_linear(tensors, mine, theirs, block.shape(part), has)
            if not has:
                found[f"{mine}.bias"] = np.zeros(e, np.float32)
    classifier = tensors.left.get("classifier.weight")
    if classifier is not None:
        options["num_classes"] = len(classifier)
        found |= take_linear(tensors, "readout", "classifier", (len(classifier), e))
    return Recipe("ImageEncoder", options, found)


def _pixels(config: Config) -> dict[str, int]:
    """The sizes of images and patches, both square."""
    found = {
        name: config.size(name, default)
        for name, default in (("image_size", 224), ("patch_size", 16), ("num_channels", 3))
    }
    if found["image_size"] % found["patch_size"]:
        raise config.refused("patch_size", f"a divisor of image_size, {found['image_size']}")
    return found


def _embeddings(tensors: Tensors, theirs: str, options: dict[str, Any]) -> dict[str, np.ndarray]:
    """Patches, the class token and the table of positions."""
    e, channels, side = options["embed_dim"], options["num_channels"], options["patch_size"]
    patches = (options["image_size"] // side) ** 2
    kernel = f"{theirs}patch_embeddings.projection"
    return {
        "embedding.weight": tensors.take(f"{kernel}.weight", e, channels, side, side).reshape(
            e, -1
        ),
        "embedding.bias": tensors.take(f"{kernel}.bias", e),
        "class_token": tensors.take(f"{theirs}cls_token", 1, 1, e)[0, 0],
        "position": tensors.take(f"{theirs}position_embeddings", 1, 1 + patches, e)[0],
    }
