"""How the heads of a layer, or its hidden units, are shared among devices."""

from typing import Any

SHARED = {
    "num_heads": "heads",
    "num_kv_heads": "heads of keys and values",
    "mlp_dim": "hidden units",
}


def sizes_per_device(layer: Any, world: int) -> dict[str, int]:
    """What each device has of a layer's heads or hidden units, by the layer's names for them.

    Raises:
        ValueError: a world that does not divide one of them.
    """
    whole = {size: getattr(layer, size) for size in SHARED if hasattr(layer, size)}
    for size, count in whole.items():
        if count % world:
            what = f"{SHARED[size]} of {type(layer).__name__}"
            raise ValueError(f"world: got {world}, expected a divisor of {count}, the {what}")
    return {size: count // world for size, count in whole.items()}
