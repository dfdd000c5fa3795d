"""How large the largest tensor is that PyTorch makes while something runs."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class LargestTensor(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it bare
    """A with-block that counts the entries of the largest one."""

    entries = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = function(*args, **(kwargs or {}))
        for a in out if isinstance(out, tuple | list) else (out,):
            if isinstance(a, torch.Tensor):
                self.entries = max(self.entries, a.numel())
        return out
