"""Checkpoints of torch.distributed.checkpoint, read without running what a file says.

PyTorch keeps two kinds of pickle in a checkpoint: its index, `.metadata`, and a small one for each
setting of the optimiser. A pickle names functions that are called when it is read. Here the index
may name the classes that PyTorch itself writes into it, the settings what `torch.load` lets in with
weights_only=True, and anything else is an error before it is called.
"""

import io
import pickle
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import ReadItem
from torch.distributed.checkpoint.state_dict_loader import load

INDEX = ".metadata"
PATHS = ("PosixPath", "WindowsPath")  # Python 3.13 keeps them in pathlib._local
METADATA = ("_MEM_FORMAT_ENCODING", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties")
STORAGE = ("BytesStorageMetadata", "ChunkStorageMetadata", "TensorStorageMetadata")
WRITTEN = {
    *(("torch.distributed.checkpoint.metadata", name) for name in (*METADATA, *STORAGE)),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    ("torch.serialization", "_get_layout"),
    ("torch", "Size"),
    *((module, path) for module in ("pathlib", "pathlib._local") for path in PATHS),
}


def read_checkpoint(folder: Path, state: dict[str, Any]) -> None:
    """Fill the tensors and settings of a state from a checkpoint; all workers call it.

    Args:
        folder: as torch.distributed.checkpoint.state_dict_saver.save leaves it.
        state: tensors of the right shapes, wherever they are to be.

    Raises:
        ValueError: a file that is missing, damaged, or names what PyTorch does not write.
    """
    try:
        load(state, storage_reader=IndexReader(folder), planner=SettingsPlanner())
    except CheckpointException as failed:
        rank, (error, _) = min(failed.failures.items())
        why, *_ = f"{error}".splitlines() or [type(error).__name__]
        raise ValueError(f"got {folder}, which rank {rank} cannot read: {why}") from failed


class IndexReader(FileSystemReader):
    """PyTorch's reader of a folder, which takes nothing from the index but what PyTorch writes."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The index: where the numbers of each tensor stand."""
        data = (Path(self.path) / INDEX).read_bytes()
        found = IndexUnpickler(io.BytesIO(data)).load()
        if not isinstance(found, Metadata):
            raise ValueError(f"got a {type(found).__name__} in {INDEX}, expected PyTorch's index")
        found.storage_meta = found.storage_meta or StorageMeta()
        found.storage_meta.load_id = self.load_id
        return found


class IndexUnpickler(pickle.Unpickler):
    """Reads a pickle that names the classes of an index, and no other class or function."""

    def find_class(self, module: str, name: str) -> Any:
        """A class that the pickle names."""
        dtype = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        if not dtype and (module, name) not in WRITTEN:
            raise pickle.UnpicklingError(f"got {module}.{name} in {INDEX}, which is not called")
        return super().find_class(module, name)


class SettingsPlanner(DefaultLoadPlanner):
    """PyTorch's planner, which takes nothing from a setting but numbers, words and lists."""

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take one setting of the optimiser over."""
        plain = io.BytesIO()
        torch.save(torch.load(value, weights_only=True), plain)
        plain.seek(0)
        super().load_bytes(read_item, plain)
