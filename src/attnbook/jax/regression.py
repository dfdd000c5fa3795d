"""Kernel regression whose bandwidth, heads or metric are learned."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, PRNGKeyArray

from attnbook._validation import numbers
from attnbook.jax.dropout import check_key_or_none
from attnbook.kernel.regression import in_metric, multi_head, nadaraya_watson


class KernelRegression(eqx.Module):
    """Gaussian kernel regression, f̂(q) = Σ_j softmax_j(−‖(q − k_j)/h‖²/2) v_j, with h learned.

    The parameter is log h, so that every step of an optimiser leaves h above 0.

    Args:
        bandwidth: where h starts: a number, or one per coordinate.
        key: a random key, as every layer takes one; nothing here is random.

    Raises:
        ValueError: a bandwidth that is not above 0.
    """

    log_bandwidth: Array

    def __init__(
        self, bandwidth: float | list[float] = 1.0, *, key: PRNGKeyArray | None = None
    ) -> None:
        check_key_or_none(key)
        self.log_bandwidth = jnp.log(jnp.asarray(numbers.bandwidth(bandwidth)))

    @property
    def bandwidth(self) -> Array:
        """The bandwidth h, of shape () or (d,)."""
        return jnp.exp(self.log_bandwidth)

    def __call__(
        self,
        queries: Float[Array, "... m d"],
        keys: Float[Array, "... n d"],
        values: Float[Array, "... n p"],
        mask: Array | None = None,
    ) -> Float[Array, "... m p"]:
        """Predictions at the queries; arguments and errors as attnbook.nadaraya_watson."""
        found: Any = nadaraya_watson(queries, keys, values, bandwidth=self.bandwidth, mask=mask)
        return found


class MultiHeadKernelRegression(eqx.Module):
    """Multi-head kernel regression, f̂(q) = Σ_h a_h f̂_h(q), with bandwidths and a learned.

    The combination a starts as the mean of the heads, 1 / heads each.

    Args:
        bandwidths: where they start, one number per head, or (heads, d), one per coordinate too.
        key: a random key, as every layer takes one; nothing here is random.

    Raises:
        ValueError: a bandwidth that is not above 0, or no head.
    """

    log_bandwidths: Array
    combination: Array

    def __init__(
        self,
        bandwidths: Sequence[float] | Sequence[Sequence[float]],
        *,
        key: PRNGKeyArray | None = None,
    ) -> None:
        check_key_or_none(key)
        start = jnp.asarray(numbers.bandwidths(bandwidths))
        self.log_bandwidths = jnp.log(start)
        self.combination = jnp.full(len(start), 1 / len(start), dtype=start.dtype)

    @property
    def bandwidths(self) -> Array:
        """The bandwidths h, of shape (heads,) or (heads, d)."""
        return jnp.exp(self.log_bandwidths)

    def __call__(
        self,
        queries: Float[Array, "... m d"],
        keys: Float[Array, "... n d"],
        values: Float[Array, "... n p"],
        mask: Array | None = None,
    ) -> Float[Array, "... m p"]:
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


class MetricKernelRegression(eqx.Module):
    """Gaussian kernel regression with scores −‖W(q − k)‖²/2, the metric W learned.

    Args:
        metric: where W starts, of shape (r, d); the identity over h is KernelRegression(h).
        key: a random key, as every layer takes one; nothing here is random.

    Raises:
        ValueError: a metric that is no matrix of finite numbers.
    """

    metric: Array

    def __init__(
        self, metric: Sequence[Sequence[float]], *, key: PRNGKeyArray | None = None
    ) -> None:
        check_key_or_none(key)
        self.metric = jnp.asarray(numbers.metric(metric))

    def __call__(
        self,
        queries: Float[Array, "... m d"],
        keys: Float[Array, "... n d"],
        values: Float[Array, "... n p"],
        mask: Array | None = None,
    ) -> Float[Array, "... m p"]:
        """Predictions at the queries; arguments and errors as kernel.regression.in_metric."""
        found: Any = in_metric(queries, keys, values, metric=self.metric, mask=mask)
        return found
