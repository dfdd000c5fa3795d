"""Mistakes in averages that are computed in parts: streams, blocks, pages."""

from faults.fault import faults

FAULTS = faults(r"""
exact/online_softmax | numpy
    the sum of one part is not scaled | ⟦of_a * →⟧a.total + of_b * b.total
    the values of the other part are not scaled | + ⟦of_b[..., None] * →⟧b.weighted
    scaled the wrong way |
        xp.exp⟦(a.top - larger), xp.exp(b.top - larger)→(b.top - larger), xp.exp(a.top - larger)⟧
    the smaller of the largest scores | xp.⟦maximum→minimum⟧(a.top, b.top)
    the largest score not subtracted, part | xp.exp(scores⟦ - _finite(xp, top)[..., None]→⟧)
    from −∞ itself subtracted | return ⟦xp.where(top == -xp.inf, xp.zeros_like(top), top)→top⟧
    a row without a key is divided by 0 |
        ⟦xp.where(nothing, xp.ones_like(part.total), part.total)→part.total⟧
    the logarithm without its largest score | ⟦part.top + →⟧xp.log(total)
    the log-sum-exp is the largest score | part.top⟦ + xp.log(total)→⟧
    masked scores are 0 | xp.where(mask, scores, ⟦-xp.inf→0.0⟧)
    mask inverted, part | xp.where(mask, ⟦scores, -xp.inf→-xp.inf, scores⟧)
    a part without a key weighs something | xp.⟦full(shape, -xp.inf, **how)→zeros(shape, **how)⟧
    an average of averages without weights | part.weighted⟦ / total[..., None]→⟧
exact/flash | numpy
    no scale in the gradient | ⟦ / math.sqrt(q.shape[-1])→⟧
    the gradient without δ | (g @ v.mT⟦ - delta→⟧)
    δ added | (g @ v.mT ⟦-→+⟧ delta)
    δ from the values of g alone | wide_g * ⟦wide_output→wide_g⟧, axis
    weights that are not divided | xp.exp(found⟦ - logs→⟧)
    keys and queries swapped, gradient | return by_scores @ k, by_scores.mT @ ⟦q→(0 * q)⟧,
    values get the gradient of scores | ⟦weights→by_scores⟧.mT @ g
    the last block of keys only, gradient | ⟦dq[r] + →⟧for_q
    the last block of queries only, gradient | ⟦dk[c] + →⟧for_k
    the last block of queries only, values | ⟦dv[c] + →⟧for_v
    a token cannot see itself, in blocks | position[None, :] <⟦=→⟧ position[:, None]
    a block on the diagonal is whole | if columns.start <⟦→=⟧ rows.start:
    later blocks are seen | return ⟦bool(columns.start > rows.start)→False⟧
    the diagonal is not seen | return bool(columns.start >⟦ rows.start→= rows.start > 0⟧)
    the rest is left out | for i in range(0, max(length⟦→ - block + 1⟧, 1), block)
    broadcast gradients are not summed | = xp.⟦sum→mean⟧(gradient, axis=tuple(axes), keepdims=True)
    half precision stays half | wide = ⟦upcast_half(xp, q, k, v)→q, k, v⟧
    partial blocks are full | ⟦some.astype(int) + every→2 * some⟧
    full blocks are partial | some.astype(int)⟦ + every→⟧
    the first rows for all blocks | .arange(⟦row * block, min((row + 1) * block, m)→min(block, m)⟧)
exact/paged_cache | numpy
    a fork shares its table | ⟦list(self.table)→self.table⟧, self.length
    a fork is no reader | self.pool.readers[page] += ⟦1→0⟧
    written into what others read | elif ⟦pool.readers[self.table[-1]] > 1→False⟧:
    a copy at every write | ⟦elif pool.readers[self.table[-1]] > 1→else⟧:
    an empty copy | (new,), ⟦→0 * ⟧pool.keys[old, ...]
    values are not copied | (new,), ⟦→0 * ⟧pool.values[old, ...]
    the old page keeps its reader | ⟦        pool.drop(old)\n→⟧
    pages do not come back | if ⟦self.readers[page] == 0→False⟧:
    pages come back too early | if self.readers[page] ⟦=→>⟧= 0:
    what is not written is read | end = ⟦min(size, self.length - number * size)→size⟧
    the last page is full | end = min(size, self.length⟦ - number * size→⟧)
    every token in the first slot | ⟦self.length % self.pool.page_size→0 * self.length⟧
""")
