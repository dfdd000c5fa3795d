"""How the heads of a layer, or its hidden units, are shared among devices."""

from typing import Any

SHARED = {
    "num_heads": "heads",
    "num_kv_heads": "heads of keys and values",
    "mlp_dim": "hidden units",
}


def sizes_per_device(layer: Any, world: int, name: str = "world", of: str = "") -> dict[str, int]:
    """What each device has of the sizes that devices share, by the layer's names for them.

    Args:
        layer: with heads or hidden units, of either back end.
        world: how many devices there are.
        name: what errors call the world.
        of: words behind an error that say which layer it is.

    Raises:
        ValueError: a world that does not divide one of them.
    """
    whole = {size: getattr(layer, size) for size in SHARED if hasattr(layer, size)}
    for size, count in whole.items():
        if count % world:
            what = f"{SHARED[size]}{of}"
            raise ValueError(f"{name}: got {world}, expected a divisor of {count}, the {what}")
    return {size: count // world for size, count in whole.items()}
