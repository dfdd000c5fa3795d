"""Kernel regression whose bandwidth, heads or metric are learned."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, PRNGKeyArray

from attnbook._validation import all_positive, finite
from attnbook.jax.dropout import check_key_or_none
from attnbook.kernel.regression import in_metric, multi_head, nadaraya_watson


class KernelRegression(eqx.Module):
    """The JAX twin of attnbook.torch.KernelRegression.

    It may be given a key as every layer, and draws nothing from it.
    """

    log_bandwidth: Array

    def __init__(
        self, bandwidth: float | list[float] = 1.0, *, key: PRNGKeyArray | None = None
    ) -> None:
        check_key_or_none(key)
        start = all_positive("() or (d,)", (0, 1), bandwidth=bandwidth)
        self.log_bandwidth = jnp.log(jnp.asarray(start))

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
    """The JAX twin of attnbook.torch.MultiHeadKernelRegression.

    It may be given a key as every layer, and draws nothing from it.
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
        start = jnp.asarray(all_positive("(heads,) or (heads, d)", (1, 2), bandwidths=bandwidths))
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
    """The JAX twin of attnbook.torch.MetricKernelRegression.

    It may be given a key as every layer, and draws nothing from it.
    """

    metric: Array

    def __init__(
        self, metric: Sequence[Sequence[float]], *, key: PRNGKeyArray | None = None
    ) -> None:
        check_key_or_none(key)
        self.metric = jnp.asarray(finite(metric=metric))

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
