"""Kernel regression with a bandwidth that can be learned."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnbook import arguments
from attnbook.regression import nadaraya_watson


class KernelRegression(nn.Module):
    """Gaussian kernel regression, f̂(q) = Σ_j softmax_j(−‖(q − k_j)/h‖²/2) v_j, with h learned.

    The parameter is log h, so that every step of an optimiser leaves h above 0.

    Args:
        bandwidth: where h starts: a number, or one a coordinate.

    Raises:
        ValueError: a bandwidth that is not above 0.
    """

    log_bandwidth: nn.Parameter

    def __init__(self, bandwidth: float | list[float] = 1.0) -> None:
        super().__init__()
        start = torch.as_tensor(arguments.starting_bandwidth(bandwidth))
        self.log_bandwidth = nn.Parameter(start.to(torch.get_default_dtype()).log())

    @property
    def bandwidth(self) -> Tensor:
        """The bandwidth h, of shape () or (d,)."""
        return self.log_bandwidth.exp()

    def forward(
        self,
        queries: Float[Tensor, "... m d"],
        keys: Float[Tensor, "... n d"],
        values: Float[Tensor, "... n p"],
        mask: Tensor | None = None,
    ) -> Float[Tensor, "... m p"]:
        """Predictions at the queries; arguments and errors as attnbook.nadaraya_watson."""
        return nadaraya_watson(queries, keys, values, bandwidth=self.bandwidth, mask=mask)
