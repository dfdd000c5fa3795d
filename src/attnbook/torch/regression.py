"""Kernel regression whose bandwidth, heads or metric are learned."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnbook._validation import all_positive, finite
from attnbook.kernel.regression import in_metric, multi_head, nadaraya_watson


class KernelRegression(nn.Module):
    """Gaussian kernel regression, f̂(q) = Σ_j softmax_j(−‖(q − k_j)/h‖²/2) v_j, with h learned.

    The parameter is log h, so that every step of an optimiser leaves h above 0.

    Args:
        bandwidth: where h starts: a number, or one per coordinate.

    Raises:
        ValueError: a bandwidth that is not above 0.
    """

    log_bandwidth: nn.Parameter

    def __init__(self, bandwidth: float | list[float] = 1.0) -> None:
        super().__init__()
        start = torch.tensor(all_positive("() or (d,)", (0, 1), bandwidth=bandwidth))
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
        found: Any = nadaraya_watson(queries, keys, values, bandwidth=self.bandwidth, mask=mask)
        return found


class MultiHeadKernelRegression(nn.Module):
    """Multi-head kernel regression, f̂(q) = Σ_h a_h f̂_h(q), with bandwidths and a learned.

    The combination a starts as the mean of the heads, 1 / heads each.

    Args:
        bandwidths: where they start, one number per head, or (heads, d), one per coordinate too.

    Raises:
        ValueError: a bandwidth that is not above 0, or no head.
    """

    log_bandwidths: nn.Parameter
    combination: nn.Parameter

    def __init__(self, bandwidths: Sequence[float] | Sequence[Sequence[float]]) -> None:
        super().__init__()
        start = torch.tensor(all_positive("(heads,) or (heads, d)", (1, 2), bandwidths=bandwidths))
        start = start.to(torch.get_default_dtype())
        self.log_bandwidths = nn.Parameter(start.log())
        self.combination = nn.Parameter(torch.full((len(start),), 1 / len(start)))

    @property
    def bandwidths(self) -> Tensor:
        """The bandwidths h, of shape (heads,) or (heads, d)."""
        return self.log_bandwidths.exp()

    def forward(
        self,
        queries: Float[Tensor, "... m d"],
        keys: Float[Tensor, "... n d"],
        values: Float[Tensor, "... n p"],
        mask: Tensor | None = None,
    ) -> Float[Tensor, "... m p"]:
        """Predictions at the queries; arguments and errors as kernel.regression.multi_head."""
        found: Any = multi_head(
            queries,
            keys,
            values,
            bandwidths=self.bandwidths,
            combination=self.combination,
            mask=mask,
        )
        return found


class MetricKernelRegression(nn.Module):
    """Gaussian kernel regression with scores −‖W(q − k)‖²/2, the metric W learned.

    Args:
        metric: where W starts, of shape (r, d); the identity over h is KernelRegression(h).

    Raises:
        ValueError: a metric that is no matrix of finite numbers.
    """

    metric: nn.Parameter

    def __init__(self, metric: Sequence[Sequence[float]]) -> None:
        super().__init__()
        start = torch.tensor(finite(metric=metric))
        self.metric = nn.Parameter(start.to(torch.get_default_dtype()))

    def forward(
        self,
        queries: Float[Tensor, "... m d"],
        keys: Float[Tensor, "... n d"],
        values: Float[Tensor, "... n p"],
        mask: Tensor | None = None,
    ) -> Float[Tensor, "... m p"]:
        """Predictions at the queries; arguments and errors as kernel.regression.in_metric."""
        found: Any = in_metric(queries, keys, values, metric=self.metric, mask=mask)
        return found
