"""Weights without the softmax: a state of fixed size, its three forms, and two layers.

A token writes k uᵀ into a state S of shape (d, p), which may decay before, and reads Sᵀ q. The same
numbers come token by token, in chunks, from the (n, n) weights, and from a scan of affine maps.
"""

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace, device, is_jax_array
from jaxtyping import Float

from attnbook._types import Array
from attnbook._validation import positive_int, without_autocast
from attnbook.linear_attention.inputs import check_state_inputs
from attnbook.linear_attention.online_regression import unchecked_one_pass

Arrays = tuple[Any, ...]  # or None in a place


def recurrent(
    q: Float[Array, "... n d"],
    k: Float[Array, "... n d"],
    v: Float[Array, "... n p"],
    *,
    decay: Float[Array, "... n"] | None = None,
    beta: Float[Array, "... n"] | None = None,
    state: Float[Array, "... d p"] | None = None,
) -> tuple[Float[Array, "... n p"], Float[Array, "... d p"]]:
    """One token after the other: S_t = a_t S_{t−1} + k_t u_tᵀ, and the output S_tᵀ q_t.

    u_t is v_t, or with beta what the state lacks, β_t (v_t − a_t S_{t−1}ᵀ k_t): the delta rule. A
    token is read after it is written. The cost grows with n, the state does not.

    Args:
        q: of shape (..., n, d).
        k: of shape (..., n, d).
        v: of shape (..., n, p); leading axes broadcast.
        decay: a_t, the share of the state that stays, of shape (..., n); 1 without it.
        beta: β_t, the share of the difference that is written, of shape (..., n); without it the
            value itself is written.
        state: S_0, of shape (..., d, p); 0 without it.

    Returns:
        The outputs, of shape (..., n, p), and the state S_n after them, (..., d, p), with which a
        next piece of the sequence goes on. float16 and bfloat16 are computed in float32, in which
        their state stays.

    Raises:
        ValueError: shapes or dtypes that do not fit.
        TypeError: arrays of different libraries.

    Source: the sum is Katharopoulos et al.'s (2020), section 3.4, the delta rule Schlag, Irie and
        Schmidhuber's (2021), section 4.2, with decay Yang et al.'s (2025), section 3.1.
    """
    xp, tokens, (decay, beta, start), lead = _checked(q, k, v, decay, beta, state)
    n, p = v.shape[-2:]
    first = tuple(xp.moveaxis(a, (-2,), (0,)) for a in tokens)
    rates = tuple(None if a is None else xp.moveaxis(a, (-1,), (0,)) for a in (decay, beta))
    with without_autocast(q):
        last, outputs = _unroll(_write_and_read, start, (*first, *rates))
    outputs = xp.broadcast_to(xp.moveaxis(outputs, (0,), (-2,)), (*lead, n, p))
    return xp.astype(outputs, q.dtype), last


def _write_and_read(state: Array, token: Arrays) -> tuple[Array, Array]:
    """One step of recurrent: of q, k (..., d), v (..., p), decay and beta (...)."""
    q, k, v, decay, beta = token
    kept = state if decay is None else decay[..., None, None] * state
    u = v if beta is None else beta[..., None] * (v - _read(kept, k))
    state = kept + k[..., :, None] * u[..., None, :]
    return state, _read(state, q)


def _read(state: Float[Array, "... d p"], q: Float[Array, "... d"]) -> Float[Array, "... p"]:
    return (q[..., None, :] @ state)[..., 0, :]


def chunked(
    q: Float[Array, "... n d"],
    k: Float[Array, "... n d"],
    v: Float[Array, "... n p"],
    *,
    decay: Float[Array, "... n"] | None = None,
    beta: Float[Array, "... n"] | None = None,
    chunk: int = 64,
    state: Float[Array, "... d p"] | None = None,
) -> tuple[Float[Array, "... n p"], Float[Array, "... d p"]]:
    """The numbers of recurrent in chunks of C tokens: matrices within, a state between them.

    With D_ij = a_{j+1} … a_i for j ≤ i, else 0, and g_i = a_1 … a_i, both within the chunk,
    O = g ⊙ (Q S) + (Q Kᵀ ⊙ D) U and S ← g_C S + (K ⊙ D_C)ᵀ U. U is V, or with beta what solves
    (I + β tril(K Kᵀ ⊙ D, −1)) U = β (V − g ⊙ (K S)), a triangle. No decay is divided by.

    Args:
        q: of shape (..., n, d).
        k: of shape (..., n, d).
        v: of shape (..., n, p); leading axes broadcast.
        decay: of shape (..., n), as in recurrent.
        beta: of shape (..., n), as in recurrent.
        chunk: C, 1 or more. Work within chunks grows with C, the number of steps with n / C.
        state: S_0, of shape (..., d, p), as in recurrent.

    Returns:
        The outputs, of shape (..., n, p), and the state (..., d, p) after them, as recurrent.

    Raises:
        ValueError: shapes or dtypes that do not fit, a chunk that is no integer of 1 or more.
        TypeError: arrays of different libraries.

    Source: Yang et al. (2024), section 3; with decay Yang et al. (2025), section 3.3.
    """
    positive_int(chunk=chunk)
    xp, tokens, (decay, beta, start), lead = _checked(q, k, v, decay, beta, state)
    n = q.shape[-2]
    chunk = max(1, min(int(chunk), n))
    missing = -n % chunk  # tokens that write nothing make the last chunk whole
    pieces = [_cut(xp, a, chunk, missing, 0, axis=-2) for a in tokens]
    rates = [
        _cut(xp, decay, chunk, missing, 1, axis=-1),
        _cut(xp, beta, chunk, missing, 0, axis=-1),
    ]
    with without_autocast(q):
        last, outputs = _unroll(_chunk, start, (*pieces, *rates))
    outputs = xp.moveaxis(outputs, (0,), (-3,))
    joined = xp.reshape(outputs, (*lead, n + missing, v.shape[-1]))
    return xp.astype(joined[..., :n, :], q.dtype), last


def _cut(xp: Any, a: Array | None, chunk: int, missing: int, fill: int, axis: int) -> Array | None:
    """Tokens (..., n, …) as chunks, (n / chunk, ..., chunk, …), filled up to whole ones."""
    if a is None:
        return None
    axis += a.ndim
    before, after = tuple(a.shape[:axis]), tuple(a.shape[axis + 1 :])
    if missing:
        more = xp.full((*before, missing, *after), fill, dtype=a.dtype, device=device(a))
        a = xp.concat([a, more], axis=axis)
    a = xp.reshape(a, (*before, a.shape[axis] // chunk, chunk, *after))
    return xp.moveaxis(a, (axis,), (0,))


def _chunk(state: Array, tokens: Arrays) -> tuple[Array, Array]:
    """One step of chunked: of q, k (..., C, d), v (..., C, p), decay and beta (..., C)."""
    q, k, v, decay, beta = tokens
    if decay is None:
        within, kept = _masked(q, k, None), state
        asked, told = q @ state, k
    else:
        products = _decays(decay)
        since = decay[..., :1, None] * products[..., :, :1]  # g, of shape (..., C, 1)
        within, kept = _masked(q, k, products), since[..., -1:, :] * state
        asked, told = since * (q @ state), k * products[..., -1, :, None]
    u = v
    if beta is not None:
        known = k @ state if decay is None else since * (k @ state)
        gram = _gram(k, None if decay is None else products)
        u = unchecked_one_pass(gram, v - known, beta[..., None])
    return kept + told.mT @ u, asked + within @ u


def weights(
    q: Float[Array, "... n d"],
    k: Float[Array, "... n d"],
    *,
    decay: Float[Array, "... n"] | None = None,
    beta: Float[Array, "... n"] | None = None,
) -> Float[Array, "... n n"]:
    """Weights W = (Q Kᵀ ⊙ D) M, with which W V is the output of recurrent from an empty state.

    D_ij = a_{j+1} … a_i for j ≤ i, else 0. M is I, or with beta (I + β tril(K Kᵀ ⊙ D, −1))⁻¹ β. The
    weights may be negative, and their rows need not sum to 1.

    Args:
        q: of shape (..., n, d).
        k: of shape (..., n, d); leading axes broadcast.
        decay: of shape (..., n), as in recurrent.
        beta: of shape (..., n), as in recurrent.

    Returns:
        Of shape (..., n, n), 0 above the diagonal.

    Raises:
        ValueError: shapes or dtypes that do not fit.
        TypeError: arrays of different libraries.

    Source: Dao and Gu (2024), section 4, structured masked attention; with the delta rule Yang et
        al. (2024), section 3.
    """
    xp, (wide_q, wide_k), (decay, beta, _), lead = check_state_inputs(
        {"q": q, "k": k}, {"decay": decay, "beta": beta}
    )
    products = None if decay is None else _decays(decay)
    with without_autocast(q):
        found = _masked(wide_q, wide_k, products)
        if beta is not None:
            n = q.shape[-2]
            identity = xp.eye(n, dtype=found.dtype, device=device(found))
            found = found @ unchecked_one_pass(_gram(wide_k, products), identity, beta[..., None])
    return xp.astype(xp.broadcast_to(found, (*lead, *found.shape[-2:])), q.dtype)


def affine_scan(
    q: Float[Array, "... n d"],
    k: Float[Array, "... n d"],
    v: Float[Array, "... n p"],
    *,
    decay: Float[Array, "... n"] | None = None,
    beta: Float[Array, "... n"] | None = None,
) -> tuple[Float[Array, "... n p"], Float[Array, "... d p"]]:
    """The numbers of recurrent by a scan: a token is an affine map of the state, S ↦ A S + B.

    A_t = a_t (I − β_t k_t k_tᵀ) and B_t = β_t k_t v_tᵀ; without beta A_t = a_t I, B_t = k_t v_tᵀ.
    One map after another is an affine map again, (A₂ A₁, A₂ B₁ + B₂), and grouping does not matter,
    so all states come in about log₂ n rounds. They all stand in memory, n d (d + p) numbers.

    Args:
        q: of shape (..., n, d).
        k: of shape (..., n, d).
        v: of shape (..., n, p); leading axes broadcast.
        decay: of shape (..., n), as in recurrent.
        beta: of shape (..., n), as in recurrent.

    Returns:
        The outputs, of shape (..., n, p), and the last state, of shape (..., d, p), as recurrent.

    Raises:
        ValueError: shapes or dtypes that do not fit.
        TypeError: arrays of different libraries.

    Source: Martin and Cundy (2018), section 2; rounds as Hillis and Steele's (1986), in JAX as
        Blelloch's (1990).
    """
    xp, (wide_q, k, v), (decay, beta, start), lead = _checked(q, k, v, decay, beta, None)
    n, d = k.shape[-2:]
    maps = xp.eye(d, dtype=k.dtype, device=device(k))
    if beta is not None:
        maps = maps - beta[..., None, None] * (k[..., :, None] * k[..., None, :])
        v = beta[..., None] * v
    if decay is not None:
        maps = decay[..., None, None] * maps
    writes = k[..., :, None] * v[..., None, :]
    pair = tuple(
        xp.moveaxis(xp.broadcast_to(a, (*lead, n, *a.shape[-2:])), (-3,), (0,))
        for a in (maps, writes)
    )
    with without_autocast(q):
        _, states = _scan(_one_after_another, pair)
        outputs = _read(xp.moveaxis(states, (0,), (-3,)), wide_q)
    last = states[-1, ...] if n else start
    return xp.astype(outputs, q.dtype), last


def _one_after_another(first: Arrays, then: Arrays) -> tuple[Array, Array]:
    """The affine map S ↦ A₂ (A₁ S + B₁) + B₂."""
    return then[0] @ first[0], then[0] @ first[1] + then[1]


def _scan(combine: Callable[[Any, Any], Any], arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    """x_0, x_0 ∘ x_1, x_0 ∘ x_1 ∘ x_2 and so on, along the first axis.

    In rounds: each joins what stands 1, 2, 4, … places before it. JAX has a scan of its own.
    """
    if is_jax_array(arrays[0]):
        import jax

        found: tuple[Array, ...] = jax.lax.associative_scan(combine, arrays)
        return found
    xp, n, step = array_namespace(arrays[0]), arrays[0].shape[0], 1
    while step < n:
        joined = combine(
            tuple(a[:-step, ...] for a in arrays), tuple(a[step:, ...] for a in arrays)
        )
        arrays = tuple(
            xp.concat([a[:step, ...], b], axis=0) for a, b in zip(arrays, joined, strict=True)
        )
        step *= 2
    return arrays


def _checked(
    q: Array, k: Array, v: Array, decay: Array | None, beta: Array | None, state: Array | None
) -> tuple[Any, list[Array], tuple[Array | None, Array | None, Array], tuple[int, ...]]:
    """What a form of the layer is given, in float32 or wider, with a state to start from."""
    xp, tokens, (decay, beta, state), lead = check_state_inputs(
        {"q": q, "k": k, "v": v}, {"decay": decay, "beta": beta}, state
    )
    shape = (*lead, k.shape[-1], v.shape[-1])
    if state is None:
        start = xp.zeros(shape, dtype=tokens[0].dtype, device=device(k))
    else:
        start = xp.broadcast_to(state, shape)
    return xp, tokens, (decay, beta, start), lead


def _unroll(
    step: Callable[[Array, Arrays], tuple[Array, Array]], state: Array, inputs: Arrays
) -> tuple[Array, Array]:
    """(state, outputs) of state, output = step(state, inputs at t) for all t, as jax.lax.scan."""
    q, _, v, *_ = inputs
    if q.shape[0] == 0:
        return state, v
    if is_jax_array(q):
        import jax

        found: tuple[Array, Array] = jax.lax.scan(step, state, inputs)
        return found
    outputs = []
    for t in range(q.shape[0]):
        state, output = step(state, tuple(None if a is None else a[t, ...] for a in inputs))
        outputs.append(output)
    return state, array_namespace(q).stack(outputs)


def _decays(decay: Float[Array, "... n"]) -> Float[Array, "... n n"]:
    """D_ij = a_{j+1} … a_i for j ≤ i, else 0: products of a_l where l > j, and of 1 elsewhere."""
    xp = array_namespace(decay)
    n = decay.shape[-1]
    place = xp.arange(n, device=device(decay))
    factors = xp.where(
        place[:, None] > place, decay[..., :, None], xp.ones_like(decay[..., :1, None])
    )
    return xp.tril(xp.cumulative_prod(factors, axis=-2))


def _masked(q: Array, k: Array, products: Array | None) -> Float[Array, "... n n"]:
    """tril(Q Kᵀ), or Q Kᵀ ⊙ D."""
    return array_namespace(q).tril(q @ k.mT) if products is None else (q @ k.mT) * products


def _gram(k: Array, products: Array | None) -> Float[Array, "... n n"]:
    """K Kᵀ, or K Kᵀ ⊙ D."""
    return k @ k.mT if products is None else (k @ k.mT) * products
