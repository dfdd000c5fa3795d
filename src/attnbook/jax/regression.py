"""Kernel regression with a bandwidth that can be learned."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, PRNGKeyArray

from attnbook import arguments
from attnbook.regression import nadaraya_watson


class KernelRegression(eqx.Module):
    """Gaussian kernel regression, f̂(q) = Σ_j softmax_j(−‖(q − k_j)/h‖²/2) v_j, with h learned.

    The parameter is log h, so that every step of an optimiser leaves h above 0.

    Args:
        bandwidth: where h starts: a number, or one a coordinate.
        key: a random key, as every layer takes one; nothing here is random.

    Raises:
        ValueError: a bandwidth that is not above 0.
    """

    log_bandwidth: Array

    def __init__(
        self, bandwidth: float | list[float] = 1.0, *, key: PRNGKeyArray | None = None
    ) -> None:
        self.log_bandwidth = jnp.log(jnp.asarray(arguments.starting_bandwidth(bandwidth)))

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
        return nadaraya_watson(queries, keys, values, bandwidth=self.bandwidth, mask=mask)
