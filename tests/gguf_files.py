"""GGUF files, written by the library of llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf.quants import quantize

Kind = gguf.GGMLQuantizationType


def write_gguf(
    file: Path,
    fields: Mapping[str, Any],
    tensors: Mapping[str, tuple[np.ndarray, Kind]] | None = None,
    architecture: str = "llama",
) -> Path:
    """A file of these fields and tensors, each quantised as its kind says."""
    writer = gguf.GGUFWriter(file, architecture)
    add: dict[type, Any] = {
        int: writer.add_uint32,
        float: writer.add_float32,
        bool: writer.add_bool,
        str: writer.add_string,
        list: writer.add_array,
    }
    for name, value in fields.items():
        add[type(value)](name, value)
    for name, (array, kind) in (tensors or {}).items():
        writer.add_tensor(name, quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
