"""Mistakes in decoding, in sampling and in n-grams."""

from faults.fault import faults

FAULTS = faults(r"""
generate/decoding | torch
    ended rows go on | ⟦xp.where(ended, xp.full_like(best, end), best)→best⟧
    a token too many | len(written) <⟦→=⟧ limit
    stops when one has ended | xp.⟦all→any⟧(ended)
    begins with the end | source.shape[:1], ⟦start→end⟧,
    weights of another row | read.append(to_numpy(weights)⟦→[::-1]⟧)
    probabilities not accumulated | ⟦so_far + →⟧log_softmax
    logits for probabilities |
        ⟦log_softmax(to_numpy(logits).astype(np.float64))→to_numpy(logits).astype(np.float64)⟧
    a beginning too long | len(beginnings[0][0]) <⟦→=⟧ limit
    an end's place filled again | [:⟦ width - len(ended)→width⟧]
    the state of another beginning | ⟦→0 * ⟧rows[tokens != end],
    in the order of their ends |
        ⟦sorted(ended or beginnings, key=lambda pair: -pair[1])→ended or beginnings⟧
    what has not ended beside | ended ⟦or→+⟧ beginnings
    probabilities in float32 | log_softmax(to_numpy(logits)⟦.astype(np.float64)→⟧)
generate/decoding | torch | generate/test_decoding.py::test_a_state_of_several_arrays
    the first part alone is followed | ⟦(part, rows) for part in state→(state[0], rows), *state[1:]⟧
    parts within parts are not followed | ⟦→part if isinstance(part, tuple) else ⟧_rows(part, rows)
generate/sampling | numpy
    logits times the temperature | (ranked - ranked[..., :1]) ⟦/→*⟧ temperature
    an overflow | ⟦(ranked - ranked[..., :1])→ranked⟧ / temperature
    ties in any order | ⟦, kind="stable"→⟧
    one too many, top_k | place <⟦→=⟧ most
    what top_k keeps is not a whole | ⟦, None if most is None else→) * (most is None or⟧ place <
    the sum with the token itself | p[np.cumsum(p, axis=-1) ⟦- p >=→>⟧ top_p
    a sum of exactly as much is too little | p >= top_p⟦ - rounding→⟧] = 0
    the rounding of the logits does not count | return np.fmin(⟦off + →⟧2 * p
    the rounding of the logits is not tempered | * (eps⟦ / temperature→⟧)
    no temperature is that of 1 | most, temperature = ⟦1→most⟧, 1.0
    what top_p keeps is no whole | - p >= top_p - rounding] = 0⟦\n        p /= p.sum(axis=-1, keepdims=True)→⟧
    all rows together, top_p | np.cumsum⟦(p, axis=-1)→(p).reshape(p.shape)⟧ - p
    ranks the other way round | ⟦np.put_along_axis(found, order, p, axis=-1)
        →found[...] = np.take_along_axis(p, order, axis=-1)⟧
    a token ruled out, at no temperature | ⟦np.where(\n
                    np.isneginf(ranked), -np.inf, (ranked - ranked[..., :1]) / temperature\n
                )→(ranked - ranked[..., :1]) / temperature⟧
    the prompt's last token alone | for token in known⟦→[-1:]⟧:\n
    the token before fed again | _token(cache, known[-⟦1→2⟧])
generate/ngrams | numpy
    nothing to share out | ⟦(kept + discount * kinds[before] * probability[t])→kept⟧ / total[before]
    occurrences for kinds | (kept + discount * ⟦kinds→total⟧[before] * probability[t]) / total
    negative counts | ⟦np.maximum(count[gram] - discount, 0)→count[gram] - discount⟧
    the whole discount shared out | (kept + ⟦discount * →⟧kinds[before] * probability[t]) / total
    occurrences at every order | if ⟦length == order→True⟧ else
    kinds at every order | if ⟦length == order→False⟧ else
    an order too few | range(1, order⟦ + 1→⟧)
    the context beside | grams[n + t], contexts[n + t⟦→ - 1⟧]
    the first tokens left out | np.arange(⟦length→order⟧ - 1, len(held_out))
    the gram before counted | grams[ends⟦→ - 1⟧],
    occurrences for tokens before | ⟦first_longer[first_longer < n]→np.arange(length, n)⟧
    tokens before in the held-out text too | first_longer⟦[first_longer < n]→⟧
    nats | -np.⟦log2→log⟧(probability)
    an even start of another size | 1 / ⟦vocab_size→(vocab_size + 1)⟧)
    an unseen context divides by 0 | t = t[total[contexts[n + t]] >⟦→=⟧ 0]
    no gram across the end of the text | np.arange(length - 1, n⟦→ - 1⟧) if
generate/speculative | numpy
    the larger of the two | np.⟦minimum→maximum⟧(p, q).sum(axis=-1)
    all rows together, share | np.minimum(p, q).sum(⟦axis=-1→⟧)
    models exchanged | rng.random() * ⟦q[i, x] >= p→p[i, x] >= q⟧[i, x]
    every draft is kept | ⟦rng.random() * q[i, x] >= p[i, x]→False⟧
    kept with probability p | rng.random() ⟦* q[i, x] →⟧>= p[i, x]
    replaced by the large model's own | _drawn(⟦_residual(p[i], q[i])→p[i]⟧, rng)
    the refused draft stays | *proposed[:⟦i→ i + 1⟧], _drawn
    drafts behind a refused one stay | _drawn(_residual(p[i], q[i]), rng)⟦→, *proposed[i + 1 :]⟧
    no token more | return ⟦[*proposed, _drawn(p[-1], rng)]→proposed⟧
    the last one from the first row | _drawn(p[⟦-1→0⟧], rng)
    the residual turned round | np.maximum(⟦p - q→q - p⟧, 0)
    the residual's size for its share | np.⟦maximum(p - q, 0)→abs(p - q)⟧
    equal models divide by 0 | missing / total⟦ if total > 0 else p→⟧
    the residual is no whole | missing ⟦/ total →⟧if total > 0 else p
    without the token that always comes | range(⟦→1, ⟧numbers.nonnegative_int(drafts=drafts) + 1)
    one draft too few | range(numbers.nonnegative_int(drafts=drafts)⟦ + 1→⟧)
""")
