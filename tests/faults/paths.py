"""Mistakes in the ways that save memory or time: blocks, the fused kernel."""

from __future__ import annotations

from faults.planting import Fault, fault

TORCH_GRADIENTS = ("test_transformations.py::test_gradcheck_where_queries_are_keys",)
TORCH_KERNEL = ("test_transformations.py::test_torch_kernel_with_a_parameter_of_its_own",)


def gaussian(words: str, original: str, changed: str) -> Fault:
    """In the fused way of kernel regression."""
    return fault("fused_gaussian", words, original, changed, backends="torch")


def attend(words: str, original: str, changed: str) -> Fault:
    """In the fused way of attend."""
    tests = ("test_attend_fast.py",)
    return fault("fused", words, original, changed, backends="torch", tests=tests)


def causal(words: str, original: str, changed: str) -> Fault:
    """In what it makes of causal."""
    return fault("fused", words, original, changed, backends="torch", tests=("test_causal.py",))


def slopes(words: str, original: str, changed: str) -> Fault:
    """In its derivatives."""
    tests = ("test_attend_derivatives.py",)
    return fault("fused", words, original, changed, backends="torch", tests=tests)


FAULTS = [
    # streaming
    fault("streaming", "remainder lost", "range(0, per_query[0].shape[-2], rows)", "range(0, per_query[0].shape[-2] - rows + 1, rows)"),
    fault("streaming", "blocks out of order", "range(0, per_query[0].shape[-2], rows)", "reversed(range(0, per_query[0].shape[-2], rows))"),
    fault("streaming", "blocks overlap", "range(0, per_query[0].shape[-2], rows)", "range(0, per_query[0].shape[-2], max(1, rows - 1))"),
    fault("streaming", "one row short", "min(start + rows, per_query[0].shape[-2])", "max(start + 1, start + rows - 1)"),
    fault(
        "streaming",
        "mask not cut",
        "a is not None and a.ndim >= 2 and a.shape[-2] == m",
        "a is queries",
    ),
    fault("streaming", "leading axes not counted", "batch * keys.shape[-2]", "keys.shape[-2]"),
    fault("streaming", "bits for bytes", ".bits // 8", ".bits"),
    fault("streaming", "joined along the wrong axis", "cut, rows)], axis=-2", "cut, rows)], axis=-1"),
    fault("streaming", "no blocks", "if rows >= m:", "if True:"),
    fault(
        "streaming",
        "no blocks in JAX",
        "batch_size=rows",
        "batch_size=10**9",
        backends="jax",
        tests=("test_streaming.py",),
    ),
    fault(
        "streaming",
        "torch keeps every block's weights for the gradient",
        "if is_torch_array(queries) and not _seen_through(kernel, *per_query, *shared):",
        "if False:",
        backends="torch",
        tests=("test_memory.py::test_memory_grows_with_m_plus_n",),
    ),
    fault(
        "streaming",
        "JAX keeps every block's weights for the gradient",
        "jax.checkpoint(one)",
        "one",
        backends="jax",
        tests=("test_memory.py::test_memory_grows_with_m_plus_n",),
    ),
    fault(
        "streaming",
        "the gradient of torch's last block only",
        "sums = [a + b for a, b in zip(sums, found, strict=True)]",
        "sums = list(found)",
        backends="torch",
        tests=TORCH_GRADIENTS,
    ),
    fault(
        "streaming",
        "every torch block has the first one's share of the gradient",
        "here = gradient[..., done : done + block.shape[-2], :]",
        "here = gradient[..., : block.shape[-2], :]",
        backends="torch",
        tests=TORCH_GRADIENTS,
    ),
    fault(
        "streaming",
        "a tensor that is queries and keys is counted twice",
        "(a.view_as(a) for a in ctx.saved_tensors)",
        "iter(ctx.saved_tensors)",
        backends="torch",
        tests=TORCH_GRADIENTS,
    ),
    fault(
        "streaming",
        "no second derivative through torch's blocks",
        "higher, done = torch.is_grad_enabled(), 0",
        "higher, done = False, 0",
        backends="torch",
        tests=TORCH_GRADIENTS,
    ),
    fault(
        "streaming",
        "a learned kernel's gradient lost",
        "torch.is_grad_enabled() and of_kernel.requires_grad",
        "False",
        backends="torch",
        tests=TORCH_KERNEL,
    ),
    fault(
        "streaming",
        "no forward mode through torch's blocks",
        "return learned or in_forward_mode(of_kernel, queries, *others)",
        "return learned",
        backends="torch",
        tests=("test_transformations.py::test_dual_numbers",),
    ),
    fault(
        "streaming",
        "a tangent that the kernel holds is lost",
        "in_forward_mode(of_kernel, queries, *others)",
        "in_forward_mode(queries, *others)",
        backends="torch",
        tests=("test_transformations.py::test_dual_numbers_in_the_bandwidth_and_the_kernel",),
    ),
    fault(
        "streaming",
        "PyTorch's blocks as small as NumPy's",
        "TORCH_BLOCKS if is_torch_array(queries) else 1",
        "1",
        backends="torch",
        tests=("test_streaming.py",),
    ),
    # fused_gaussian
    gaussian("not centred", "keys.mean(-2, keepdim=True)", "0 * keys.mean(-2, keepdim=True)"),
    gaussian("norm of the key lost", "-0.5 * (k * k)", "-0.0 * (k * k)"),
    gaussian("norm of the key without ½", "-0.5 * (k * k)", "-1.0 * (k * k)"),
    gaussian("scaled by the padded width", "scale=1.0", "scale=None"),
    gaussian("padding in place of values", "lead)[..., :columns]", "lead)[..., -columns:]"),
    gaussian("reach too wide", "ERROR = {4: 2e-5, 8: 1e-9}", "ERROR = {4: 2e-1, 8: 1e-5}"),
    gaussian("reach too narrow", "ERROR = {4: 2e-5, 8: 1e-9}", "ERROR = {4: 2e-7, 8: 1e-11}"),
    gaussian("one eps for all", "torch.finfo(computed).eps)", "torch.finfo(data).eps)"),
    gaussian("a line out of order", "values = values[order]", "values = values"),
    gaussian("answers in the order of the line", "output[its_places] =", "output[places.sort()[0][: len(part)]] ="),
    gaussian("a window of what weighs more than eps", "torch.finfo(dtype).tiny)", "torch.finfo(dtype).eps)"),
    gaussian("a window around the nearest key's own place", "math.sqrt(gap * gap + near)", "math.sqrt(near)"),
    gaussian("float32 for every part of a line", "wide = dtype if close else torch.float64", "wide = dtype"),
    gaussian("float64 for every part of a line", "wide = dtype if close else torch.float64", "wide = torch.float64"),
    gaussian("gradients through it", "if torch.is_grad_enabled() and any(", "if False and any("),
    gaussian(
        "far queries not seen",
        "torch.maximum((q * q).sum(-1).max(), (k * k).sum(-1).max())",
        "(k * k).sum(-1).max()",
    ),
    fault(
        "regression",
        "mask lost in the fused kernel",
        "if kernel is kernels.gaussian and mask is None:",
        "if kernel is kernels.gaussian:",
        backends="torch",
        tests=("test_fused.py",),
    ),
    # fused: scaled dot-product attention
    attend("no scale", "scale=1 / math.sqrt(d)", "scale=1.0"),
    attend("scale of the padded width", ", scale=1 / math.sqrt(d)", ""),
    attend("mask not passed on", "attn_mask=mask,", "attn_mask=None,"),
    attend("mask inverted", "attn_mask=mask,", "attn_mask=None if mask is None else ~mask,"),
    attend("padding not cut off", "else output[..., :p]", "else output"),
    attend("padding in place of the values", "else output[..., :p]", "else output[..., -p:]"),
    attend("no padding", "lead, width = broadcast_shapes(*shapes), max(d, p)", "lead, width = broadcast_shapes(*shapes), d"),
    attend("the mask's leading axes not counted", "for a in (*arrays, mask) if a is not None", "for a in arrays"),
    attend("leading axes not counted for the threshold", "return batch * queries", "return queries"),
    attend("the threshold itself is too few", ">= fewest", "> fewest"),
    attend("the dtype lost", "return output if output.dtype == dtype else output.to(dtype)", "return output"),
    slopes("no gradient", "return _differentiable()(*arrays, mask, causal, plain)", "return _fused(*(a.detach() for a in arrays), mask, causal)"),
    slopes("gradients in reverse", "if need]\n            found", "if need][::-1]\n            found"),
    slopes("gradients of the queries for all", "wanted = [a for a, need", "wanted = [inner[0] for a, need"),
    slopes("no second derivative", "needed, higher = ctx.needs_input_grad[:3], torch.is_grad_enabled()", "needed, higher = ctx.needs_input_grad[:3], False"),
    slopes("second derivative without the mask", "ctx.plain(*inner, mask, ctx.causal)", "ctx.plain(*inner, None, ctx.causal)"),
    slopes("second derivative of the kernel itself", "return _differentiable()(*arrays, mask, causal, plain)", "return _fused(*arrays, mask, causal)"),
    slopes("one tensor in three places counted thrice", "inner = [a.view_as(a) for a in saved]", "inner = list(saved)"),
    slopes("backward once only", "gradient, retain_graph=True", "gradient, retain_graph=higher"),
    slopes("forward mode not seen", "if any(dual.tangent is not None for dual in duals):", "if False:"),
    slopes("torch.func not seen", "if transforming():", "if False:"),
    causal("causal ignored", "is_causal=causal", "is_causal=False"),
    causal("causal ignored beside a mask", "(mask & mask.new_ones(m, n).tril() if causal else mask)", "mask"),
    causal("causal in place of the mask", "mask & mask.new_ones(m, n).tril()", "mask.new_ones(m, n).tril()"),
    causal("a token cannot see itself", ".tril()", ".tril(-1)"),
    causal("the future alone", ".tril()", ".triu()"),
    causal("the kernel's causal way beside a mask", "if causal else mask), False\n", "if causal else mask), causal\n"),
    causal("causal lost without gradients", "return _fused(*arrays, mask, causal)", "return _fused(*arrays, mask, False)"),
    causal("causal lost with gradients", "ctx.inner[2], mask, causal)", "ctx.inner[2], mask, False)"),
    causal("second derivative without causal", "mask, ctx.causal)", "mask, False)"),
    causal("a mask made where the kernel needs none", "    if mask is not None:\n        mask,", "    if mask is None and causal:\n        mask = queries.new_ones(m, n) > 0\n    if mask is not None:\n        mask,"),
]  # fmt: skip
