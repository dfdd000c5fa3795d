"""Makes random.npz: what version 1 of TabPFN says of two small tables with random weights.

Run by hand with the package tabpfn 0.1.11 beside attnbook's dependencies, on the CPU; it is no
dependency of the project. It takes a name from a module of PyTorch that newer versions do not have
there, hence the line after the imports. Of its own weights many start at 0, so numbers are added
to all of them. Made with PyTorch 2.13, NumPy 2.4 and seed 0.
"""

import json
import typing
from pathlib import Path

import numpy as np
import torch

torch.nn.modules.transformer.Optional = typing.Optional  # type: ignore[attr-defined]
from tabpfn import encoders  # noqa: E402
from tabpfn.transformer import TransformerModel  # noqa: E402

CONFIG = {
    "emsize": 8, "nhead": 2, "nhid_factor": 2, "nlayers": 2, "num_features": 4,
    "max_num_classes": 3, "dropout": 0.0, "canonical_y_encoder": False,
    "efficient_eval_masking": True, "nan_prob_no_reason": 0.0,
}  # fmt: skip
KNOWN, OPEN = 6, 3


def network() -> torch.nn.Module:
    width, columns, classes = (CONFIG[n] for n in ("emsize", "num_features", "max_num_classes"))
    made = TransformerModel(
        encoders.Linear(columns, width, replace_nan_by_zero=True), classes, width, CONFIG["nhead"],
        width * CONFIG["nhid_factor"], CONFIG["nlayers"], y_encoder=encoders.Linear(1, width),
    ).eval()  # fmt: skip
    made.criterion = torch.nn.CrossEntropyLoss(weight=torch.ones(classes))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) / parameter.shape[-1] ** 0.5)
    return made


def main() -> None:
    torch.manual_seed(0)
    made = network()
    x = torch.randn(KNOWN + OPEN, 2, CONFIG["num_features"])
    y = torch.randint(0, CONFIG["max_num_classes"], (KNOWN, 2)).float()
    logits = {}
    with torch.no_grad():
        for name, efficient in (("known", True), ("known_and_itself", False)):
            made.efficient_eval_masking = efficient
            said = made((x, torch.cat([y, torch.zeros(OPEN, 2)])), single_eval_pos=KNOWN)
            logits[f"logits/{name}"] = said.transpose(0, 1).numpy()
    state = {f"state/{name}": array.numpy() for name, array in made.state_dict().items()}
    tables = {"x": x.transpose(0, 1).numpy(), "y": y.T.numpy(), "config": json.dumps(CONFIG)}
    np.savez_compressed(Path(__file__).with_name("random.npz"), **tables, **logits, **state)


if __name__ == "__main__":
    main()
