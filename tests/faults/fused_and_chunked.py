"""Mistakes in the ways that save memory or time, and in their derivatives."""

from faults.fault import faults

FAULTS = faults(r"""
_fast/chunked | numpy
    remainder lost | range(0, per_query[0].shape[-2]⟦→ - rows + 1⟧, rows)
    chunks out of order |
        ⟦range(0, per_query[0].shape[-2], rows)→reversed(range(0, per_query[0].shape[-2], rows))⟧
    chunks overlap | range(0, per_query[0].shape[-2], ⟦rows→max(1, rows - 1)⟧)
    mask not cut | a is ⟦not None and a.ndim >= 2 and a.shape[-2] == m→queries⟧
    leading axes not counted | ⟦batch * →⟧keys.shape[-2]
_fast/chunked | torch | layers/test_memory.py::test_memory_grows_with_m_plus_n
    torch keeps every chunk's weights for the gradient |
        if ⟦is_torch_array(queries) and not _seen_through(kernel, *per_query, *shared)→False⟧:
_fast/chunked | jax | layers/test_memory.py::test_memory_grows_with_m_plus_n
    JAX keeps every chunk's weights for the gradient | ⟦jax.checkpoint(one)→one⟧
_fast/chunked | torch | models/test_transformations.py::test_gradcheck_where_queries_are_keys
    the gradient of torch's last chunk only |
        sums = ⟦[a + b for a, b in zip(sums, found, strict=True)]→list(found)⟧
    every torch chunk has the first one's share of the gradient | = gradient[..., ⟦done : done +→:⟧
    a tensor that is queries and keys is counted twice |
        ⟦(a.view_as(a) for a in ctx.saved_tensors)→iter(ctx.saved_tensors)⟧
    no second derivative through torch's chunks | higher, done = ⟦torch.is_grad_enabled()→False⟧, 0
_fast/chunked | torch |
        models/test_transformations.py::test_torch_kernel_with_a_parameter_of_its_own
    a learned kernel's gradient lost | ⟦torch.is_grad_enabled() and of_kernel.requires_grad→False⟧
_fast/chunked | torch | models/test_transformations.py::test_dual_numbers
    no forward mode through torch's chunks | ⟦ or in_forward_mode(of_kernel, queries, *others)→⟧
_fast/chunked | torch |
        models/test_transformations.py::test_dual_numbers_in_the_bandwidth_and_the_kernel
    a tangent that the kernel holds is lost | in_forward_mode(⟦of_kernel, →⟧queries, *others)
_fast/gaussian | torch
    not centred | ⟦→0 * ⟧keys.mean(-2, keepdim=True)
    norm of the key without ½ | -⟦0.5→1.0⟧ * (k * k)
    scaled by the padded width | scale=⟦1.0→None⟧
    padding in place of values | [..., ⟦:columns→-columns:⟧]
    reach too wide | ERROR = {4: 2e-⟦5, 8: 1e-9→1, 8: 1e-5⟧}
    one eps for all | torch.finfo(⟦computed→data⟧).eps
    a line out of order | values = values⟦[order]→⟧
    answers in the order of the line | output[⟦its_places→places.sort()[0][: len(part)]⟧] =
    a window of what weighs more than eps | torch.finfo(dtype).⟦tiny→eps⟧
    a window around the nearest key's own place | math.sqrt(⟦gap * gap + →⟧near)
    float32 for every part of a line | wide = dtype⟦ if close else torch.float64→⟧
    gradients through it | if ⟦torch.is_grad_enabled()→False⟧ and any
    far queries not seen |
        ⟦torch.maximum((q * q).sum(-1).max(), (k * k).sum(-1).max())→(k * k).sum(-1).max()⟧
_fast/sdpa | torch | fast/test_fast_sdpa.py
    scale of the padded width | ⟦, scale=1 / math.sqrt(d)→⟧
    mask inverted | attn_mask=⟦→None if mask is None else ~⟧mask,
    padding in place of the values | else output[..., ⟦:p→-p:⟧]
    the mask's leading axes not counted | for a in ⟦(*arrays, mask) if a is not None→arrays⟧
    what a masked NaN gives is kept | return ⟦math.isfinite(total) or not queries→queries⟧.isfinite()
    a NaN that is compiled is kept | keys = ⟦keys.where(seen[..., None], 0)→keys⟧
_fast/sdpa | torch | attention/test_attend_derivatives.py
    no gradient | return ⟦_differentiable()(*arrays, mask, causal, plain)
        →fused(*(a.detach() for a in arrays), mask, causal)⟧
    gradients in reverse | ⟦→[::-1]⟧\n            found
    no second derivative | , higher = ctx.needs_input_grad[:3], ⟦torch.is_grad_enabled()→False⟧
    second derivative without the mask | ctx.plain(*inner, ⟦mask→None⟧, ctx.causal)
    second derivative of the kernel itself |
        return ⟦_differentiable()(*arrays, mask, causal, plain)→fused(*arrays, mask, causal)⟧
    one tensor in three places counted thrice | inner = ⟦[a.view_as(a) for a in saved]→list(saved)⟧
    forward mode not seen | if ⟦any(dual.tangent is not None for dual in duals)→False⟧:
    torch.func not seen | if ⟦is_transforming()→False⟧:
_fast/sdpa | torch | attention/test_causal.py
    causal ignored beside a mask | ⟦(mask & mask.new_ones(m, n).tril() if causal else mask)→mask⟧
    causal in place of the mask | mask⟦ & mask→⟧.new_ones(m, n).tril()
    a token cannot see itself | .tril(⟦→-1⟧)
    the kernel's causal way beside a mask | if causal else mask), ⟦False→causal⟧\n
    causal lost without gradients | return fused(*arrays, mask, ⟦causal→False⟧)
    causal lost with gradients | ctx.inner[2], mask, ⟦causal→False⟧
    second derivative without causal | mask, ⟦ctx.causal→False⟧
jax/pallas_flash | jax | exact/test_pallas_flash.py
    older sums not shrunk | ⟦kept * →⟧weighted + found
    the older total not shrunk | total = ⟦kept * →⟧total
    a key after the query | (key <= row⟦→ + 1⟧)
    keys that fill up the last block take part | else key ⟦< n→>= 0⟧
    the last block of causal keys left out | pl.program_id(1) ⟦+ 1 →⟧if causal
    scale of the filled-up width | scale=1 / math.sqrt(⟦d→wide[0]⟧)
    a log-sum-exp without its largest score | log_sum_exp[...] = ⟦top + →⟧jnp.log(total)
    sums in half precision | ⟦preferred_element_type=jnp.float32, →⟧precision=precision
    every head reads the first one's keys | lambda head, block: (⟦head→0⟧, 0, 0)
""")
