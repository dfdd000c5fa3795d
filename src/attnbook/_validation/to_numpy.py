"""Arrays of any library as NumPy's."""

from typing import Any

import numpy as np

from attnbook._validation.arrays import common_namespace

NUMPYS = ("torch.float16", "torch.float32", "torch.float64")  # floats that NumPy has


def to_numpy(array: Any) -> np.ndarray:
    """An array of any library as NumPy's, wherever it is.

    Floats that NumPy does not have, bfloat16 and those of eight bits, become float32, which holds
    them.

    Args:
        array: of NumPy, PyTorch or JAX.

    Raises:
        TypeError: what is no array.
        ValueError: a tensor on the device meta, which holds no numbers, a sparse, nested or
            quantised one, complex numbers of half precision, random keys.
    """
    common_namespace(array=array)
    if getattr(array, "is_meta", False):
        raise ValueError("array: got one on the device meta, expected one that holds numbers")
    if hasattr(array, "detach"):
        return _tensor_to_numpy(array)
    if str(array.dtype).startswith("key<"):
        raise ValueError("array: got random keys, expected numbers; jax.random.key_data has theirs")
    array = np.asarray(array)
    # 2: a dtype that a library has made known to NumPy
    return array.astype(np.float32) if array.dtype.isbuiltin == 2 else array


def _tensor_to_numpy(tensor: Any) -> np.ndarray:
    """A tensor of PyTorch's, whatever says that its entries are to be read in another way."""
    if tensor.is_nested:
        raise ValueError("array: got a nested tensor, expected one of a single shape")
    if str(tensor.layout) != "torch.strided" or tensor.is_quantized:
        got = "quantised tensor" if tensor.is_quantized else f"tensor of layout {tensor.layout}"
        raise ValueError(f"array: got a {got}, expected a plain one")
    if str(tensor.dtype) == "torch.complex32":
        raise ValueError(f"array: got dtype {tensor.dtype}, expected one that NumPy has")
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.is_floating_point() and str(tensor.dtype) not in NUMPYS:
        tensor = tensor.float()
    found: np.ndarray = tensor.numpy()
    return found
