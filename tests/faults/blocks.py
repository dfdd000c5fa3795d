"""Mistakes in activations, linear maps, norms, the MLP and the residual stream."""

from faults.fault import faults

FAULTS = faults(r"""
layers/activations | numpy
    a leak, relu | xp.⟦where(x <= 0, xp.zeros_like(x), x)→maximum(x, 0.01 * x)⟧
    no number becomes 0, relu | xp.where(x ⟦<= 0, xp.zeros_like(x), x→> 0, x, xp.zeros_like(x)⟧)
    another variance, gelu | np.asarray(x)⟦ / math.sqrt(2)→⟧
    gelu by tanh | np.⟦vectorize(math.erf, otypes=[np.float64])(np.asarray(x) / math.sqrt(2))
        →tanh(math.sqrt(2 / math.pi) * (np.asarray(x) + 0.044715 * np.asarray(x) ** 3))⟧
    gelu by a sigmoid | np.⟦vectorize(math.erf, otypes=[np.float64])(np.asarray(x) / math.sqrt(2))
        →tanh(0.851 * np.asarray(x))⟧
    half the slope forgotten, silu | xp.tanh(⟦0.5 * →⟧x)
    overflow far out, silu | ⟦0.5 + 0.5 * xp.tanh(0.5 * x)→1 / (1 + xp.exp(-x))⟧
    float32 of float64 | otypes=[np.⟦float64→float32⟧]
layers/activations | torch | layers/test_activations.py
    half a slope at 0, relu | xp.⟦where(x <= 0, xp.zeros_like(x), x)→maximum(x, xp.zeros_like(x))⟧
    gelu by tanh, torch | functional.gelu(x⟦→, approximate="tanh"⟧)
layers/activations | jax | layers/test_activations.py
    gelu by tanh, JAX | approximate=⟦False→True⟧
layers/activations | numpy | models/test_blocks.py
    gelu in the gate | "swiglu": ⟦silu→gelu⟧
    silu for gelu | "gelu": ⟦gelu→silu⟧
layers/linear | numpy | attention/test_pooling.py
    no bias | else product⟦ + bias→⟧
    a linear network | ⟦relu(linear(hidden, x))→linear(hidden, x)⟧
layers/linear | torch | models/test_modules.py::test_half_precision_is_rounded_once
    in the input's dtype | wide = ⟦torch.promote_types(x.dtype, weight.dtype)→x.dtype⟧
layers/linear | jax | models/test_attention_only.py::test_equals_the_loop
    the row before | layer.weight[tokens⟦→ - 1⟧]
layers/norms | numpy
    variance over the tokens | variance = xp.mean(centred * centred, axis=⟦-1→0⟧, keepdims=True)
    the variance of a sample | variance = xp.⟦mean(centred * centred, axis=-1, keepdims=True)
        →sum(centred * centred, axis=-1, keepdims=True) / max(x.shape[-1] - 1, 1)⟧
    the mean square for the variance | mean(⟦centred * centred→wide * wide⟧, axis=-1, keepdims=True)
    mean over the tokens | wide - xp.mean(wide, axis=⟦-1→0⟧,
    eps outside the root | ⟦xp.sqrt(variance + eps)→(xp.sqrt(variance) + eps)⟧
    eps outside the root, rms | ⟦xp.sqrt(square + eps)→(xp.sqrt(square) + eps)⟧
    mean taken out, rms | ⟦wide→(wide - xp.mean(wide, axis=-1, keepdims=True))⟧ / xp.sqrt
    weights around 0 | normed ⟦→+ normed ⟧* cast_parameter
    float16 squares overflow | return xp, ⟦upcast_half(xp, x)[0]→x⟧
    eps of the norm not asked | norm.bias⟦, eps=norm.eps→⟧
layers/mlp | numpy
    gate and hidden swapped | ⟦activation(linear(layer.gate, x)) * linear(layer.hidden, x)
        →linear(layer.gate, x) * activation(linear(layer.hidden, x))⟧
    a gate without its activation | ⟦activation(linear(layer.gate, x))→linear(layer.gate, x)⟧ *
    output's bias dropped | ⟦linear(layer.output, hidden if drop is None else drop(hidden))
        →(hidden if drop is None else drop(hidden)) @ layer.output.weight.mT⟧
    outputs left out, not hidden entries |
        ⟦linear(layer.output, hidden if drop is None else drop(hidden))
        →(drop or (lambda a: a))(linear(layer.output, hidden))⟧
models/blocks | numpy
    residual dropped, pre | return ⟦x + →⟧change(apply_norm(norm, x))
    residual dropped, post | return apply_norm(norm, ⟦x + →⟧change(x))
    norm after instead of before | if placement == "⟦pre→post⟧"
    the stream normed too | return ⟦x→apply_norm(norm, x)⟧ + change(apply_norm(norm, x))
    no norm before | return x + change(⟦apply_norm(norm, x)→x⟧)
    the change normed, not the sum |
        return ⟦apply_norm(norm, x + change(x))→x + apply_norm(norm, change(x))⟧
    what is read left out | else ⟦drop(part(x))→part(drop(x))⟧
    norms swapped | x = residual(layer.⟦attention_norm, layer.norm, attention, x, drop)\n
            return residual(layer.mlp_norm→mlp_norm, layer.norm, attention, x, drop)\n
            return residual(layer.attention_norm⟧,
    MLP before attention | x = residual⟦(layer.attention_norm, layer.norm, attention, x, drop)\n
            return residual(layer.mlp_norm, layer.norm, _mlp_sublayer(layer.mlp, drop), x, drop)
        →(layer.mlp_norm, layer.norm, _mlp_sublayer(layer.mlp, drop), x, drop)\n
            return residual(layer.attention_norm, layer.norm, attention, x, drop)⟧
    norms swapped, decoder | x = residual(layer.⟦cross_norm, layer.norm, cross_attention, x, drop)\n
            return residual(layer.mlp_norm→mlp_norm, layer.norm, cross_attention, x, drop)\n
            return residual(layer.cross_norm⟧,
    attentions swapped | x = residual⟦(layer.attention_norm, layer.norm, attention, x, drop)\n
            x = residual(layer.cross_norm, layer.norm, cross_attention, x, drop)
        →(layer.cross_norm, layer.norm, cross_attention, x, drop)\n
            x = residual(layer.attention_norm, layer.norm, attention, x, drop)⟧
    attention twice | residual(layer.cross_norm, layer.norm, ⟦cross_attention→attention⟧, x, drop)
    cross-attention always before | (layer.cross_norm, ⟦layer.norm→"pre"⟧, cross_attention, x, drop)
    memory not read | self.attention(x, ⟦self.memory→None⟧, **self.how)
    mask ignored | "mask": ⟦mask→None⟧,
    dropout ignored | partial(multi_head_attention, layer⟦, drop=drop→⟧)
models/blocks | torch | attention/test_causal.py::test_layers
    causal ignored, torch | "causal": ⟦causal→False⟧
    always causal, torch | "causal": ⟦causal→True⟧
models/blocks | torch | attention/test_causal.py::test_layers_take_a_mask_too
    causal in place of the mask, torch | "mask": ⟦→None if causal else ⟧mask,
""")
