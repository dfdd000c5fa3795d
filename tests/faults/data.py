"""Mistakes in sampling, n-grams, Gaussian processes, and the data of chapters 8 and 9."""

from __future__ import annotations

from faults.heads import found
from faults.planting import Fault, fault

SHIFTED = (
    "test_datasets.py::test_shifted_by_hand",
    "test_datasets.py::test_shifted_off_the_canvas",
)
BAD_SHIFTS = ("test_datasets.py::test_shifted_bad_arguments",)
BY_CACHE = "test_sampling.py::test_a_model_is_sampled_by_its_cache"

KEPT = "p[np.cumsum(p, axis=-1) - p >= top_p] = 0"
LOWER = "(kept + discount * kinds[gram[:-1]] * probability[t]) / seen"
DISTANCE = "(x[..., :, None] - z[..., None, :]) / scale[..., None, None]"
DRAWN = "(np.linalg.cholesky(matrix) @ normal)[..., 0]"
NOISE = "max(noise**2, JITTER)"
VARIANCE = "1 - np.sum(between * np.swapaxes(solved[..., 1:], -1, -2), axis=-1)"
OUT = "set(drawn[: 1 + int(np.searchsorted(total, held_out * total[-1]))].tolist())"
SCALES = "np.exp(rng.uniform(math.log(ends[0]), math.log(ends[1]), size=n))"


def shifted(words: str, original: str, changed: str, tests: tuple[str, ...] = SHIFTED) -> Fault:
    return fault("datasets/images", words, original, changed, tests=tests)


FAULTS = [
    *(
        fault("sampling", *words)
        for words in (
            ("logits times the temperature", "(ranked - ranked[..., :1]) / temperature", "(ranked - ranked[..., :1]) * temperature"),
            ("an overflow", "(ranked - ranked[..., :1]) / temperature", "ranked / temperature"),
            ("a warning of a small temperature", 'np.errstate(over="ignore", under="ignore", invalid="ignore")', 'np.errstate(under="ignore", invalid="ignore")'),
            ("no temperature", "(ranked - ranked[..., :1]) / temperature", "(ranked - ranked[..., :1])"),
            ("ties in any order", ', kind="stable")', ")"),
            ("the larger number first", "np.argsort(-logits, axis=-1", "logits.shape[-1] - 1 - np.argsort(-logits[..., ::-1], axis=-1"),
            ("the least probable kept", "np.argsort(-logits", "np.argsort(logits"),
            ("one too many, top_k", "p[..., sizes.size(top_k=top_k) :] = 0", "p[..., sizes.size(top_k=top_k) + 1 :] = 0"),
            ("NaN drawn from", "if not np.all(np.isfinite(logits.max(axis=-1))):", "if np.any(np.isinf(logits.max(axis=-1))):"),
            ("nothing to draw from", "if not np.all(np.isfinite(logits.max(axis=-1))):", "if np.any(np.isnan(logits)):"),
            ("one good row is enough", "if not np.all(np.isfinite(logits", "if not np.any(np.isfinite(logits"),
            ("no token ruled out", "np.isfinite(logits.max(axis=-1))", "np.isfinite(logits)"),
            ("any top_k", "sizes.size(top_k=top_k)", "top_k"),
            ("what top_k keeps is not a whole", "        p[..., sizes.size(top_k=top_k) :] = 0\n    p /= p.sum(axis=-1, keepdims=True)", "        p /= p.sum(axis=-1, keepdims=True)\n        p[..., sizes.size(top_k=top_k) :] = 0\n    else:\n        p /= p.sum(axis=-1, keepdims=True)"),
            ("the sum with the token itself", KEPT, "p[np.cumsum(p, axis=-1) > top_p] = 0"),
            ("a sum of exactly as much is too little", KEPT, KEPT.replace(">=", ">")),
            ("each alone compared, top_p", KEPT, "p[p < 1 - top_p] = 0"),
            ("what top_p keeps is no whole", f"{KEPT}\n        p /= p.sum(axis=-1, keepdims=True)", KEPT),
            ("all rows together, top_p", "np.cumsum(p, axis=-1) - p", "np.cumsum(p).reshape(p.shape) - p"),
            ("in the order of their ranks", "np.put_along_axis(found, order, p, axis=-1)", "found[...] = p"),
            ("ranks the other way round", "np.put_along_axis(found, order, p, axis=-1)", "found[...] = np.take_along_axis(p, order, axis=-1)"),
            ("a temperature of 0", "if not sizes.real(temperature) > 0:", "if not sizes.real(temperature) >= 0:"),
            ("a share of 0", "0 < sizes.real(top_p) <= 1", "0 <= sizes.real(top_p) <= 1"),
            ("a share below 1 alone", "0 < sizes.real(top_p) <= 1", "0 < sizes.real(top_p) < 1"),
            ("no logits", " or logits.shape[-1] == 0:", ":"),
            ("float32 as it is", "np.asarray(given, dtype=np.float64)", "np.asarray(given)"),
            ("a token ruled out, at no temperature", "    p[np.isneginf(ranked)] = 0  # −∞ / ∞ is no number\n", ""),
            ("any model", 'if isinstance(model, type) or not (hasattr(model, "empty") and hasattr(model, "step")):', "if False:"),
            ("any seed", "    sizes.count(seed=seed)\n", ""),
            ("the prompt's last token alone", "        for token in known:\n", "        for token in known[-1:]:\n"),
            ("no prompt", "if not known or total", "if total"),
            ("a token too many", "total > model.max_length", "total > model.max_length + 1"),
            ("any length", "sizes.size(length=length)", "int(length)"),
            ("the seed does not count", "np.random.default_rng(seed), model", "np.random.default_rng(0), model"),
            ("another seed by default", "seed: int = 0", "seed: int = 1"),
            ("the most probable token always", "rng.choice(len(p), p=p)", "p.argmax()"),
            ("any token alike", "rng.choice(len(p), p=p)", "rng.choice(len(p))"),
            ("the temperature not handed on", "temperature=temperature, top_k=top_k, top_p=top_p\n            )", "top_k=top_k, top_p=top_p\n            )"),
            ("top_k not handed on", "temperature=temperature, top_k=top_k, top_p=top_p\n            )", "temperature=temperature, top_p=top_p\n            )"),
            ("top_p not handed on", "temperature=temperature, top_k=top_k, top_p=top_p\n            )", "temperature=temperature, top_k=top_k\n            )"),
            ("the last token is fed as well", "            if len(known) < total:\n                cache", "            if True:\n                cache"),
            ("the token before fed again", "_token(cache, known[-1])", "_token(cache, known[-2])"),
            ("the prompt left out", "return np.array(known)", "return np.array(known[-length:])"),
        )
    ),
    *(found("sampling", library, BY_CACHE, f"no tensor, {library}", "return 0 * cache.length + token", "return [token]") for library in ("torch", "jax")),
    *(
        fault("ngrams", *words)
        for words in (
            ("nothing to share out", LOWER, "kept / seen"),
            ("occurrences for kinds", LOWER, LOWER.replace("kinds[gram[:-1]]", "seen")),
            ("one kind always", LOWER, LOWER.replace("kinds[gram[:-1]]", "1")),
            ("no discount", "max(counts[gram] - discount, 0)", "counts[gram]"),
            ("negative counts", "max(counts[gram] - discount, 0)", "counts[gram] - discount"),
            ("the whole discount shared out", LOWER, LOWER.replace("discount * kinds", "kinds")),
            ("occurrences at every order", "highest=n == order", "highest=True"),
            ("kinds at every order", "highest=n == order", "highest=False"),
            ("the lowest for the highest", "highest=n == order", "highest=n == 1"),
            ("an order too many", "range(1, order + 1)", "range(1, order + 2)"),
            ("an order too few", "range(1, order + 1)", "range(1, order)"),
            ("the context beside", "tuple(text[t - n + 1 : t + 1])", "tuple(text[t - n : t])"),
            ("the context backwards", "tuple(text[t - n + 1 : t + 1])", "tuple([*text[t - n + 1 : t][::-1], text[t]])"),
            ("the first tokens left out", "range(n - 1, len(text))", "range(order - 1, len(text))"),
            ("tokens after for tokens before", "Counter(gram[1:] for gram in set(grams))", "Counter(gram[:-1] for gram in set(grams))"),
            ("occurrences for tokens before", "for gram in set(grams))", "for gram in grams)"),
            ("nats", "-np.log2(probability)", "-np.log(probability)"),
            ("probabilities for bits", "-np.log2(probability)", "probability"),
            ("an even start of another size", "1 / vocab_size)", "1 / (vocab_size + 1))"),
            ("any order", "    sizes.size(order=order)\n", ""),
            ("any vocabulary", "    sizes.size(vocab_size=vocab_size)\n", ""),
            ("a table for a text", "if array.ndim != 1:", "if False:"),
            ("any discount", "    sizes.share(discount=discount)\n", ""),
            ("any tokens of the training text", "    check.numbers(vocab_size, train=train)\n", ""),
            ("any tokens held out", "    check.numbers(vocab_size, held_out=held_out)\n", ""),
            ("another discount by default", "discount: float = 0.75", "discount: float = 0.5"),
            ("an unseen context stops all", "if seen := total[gram[:-1]]:", "if seen := max(total[gram[:-1]], 1):"),
            ("a warning of what is unseen", 'np.errstate(divide="ignore")', "np.errstate()"),
            ("no gram across the end of the text", "(text[k:] for k in range(longer))", "(text[k:-1] for k in range(longer))"),
        )
    ),
    *(
        fault("gaussian_process", *words)
        for words in (
            ("twice as narrow", "np.exp(-0.5 * distance**2)", "np.exp(-(distance**2))"),
            ("a rough function", "np.exp(-0.5 * distance**2)", "np.exp(-0.5 * np.abs(distance))"),
            ("multiplied by the length scale", DISTANCE, DISTANCE.replace("/ scale", "* scale")),
            ("x and z exchanged", DISTANCE, DISTANCE.replace("x[..., :, None] - z[..., None, :]", "x[..., None, :] - z[..., :, None]")),
            ("any length scale", 'if scale.dtype.kind not in "iuf" or not np.all((scale > 0) & np.isfinite(scale)):', "if False:"),
            ("one good length scale is enough", "not np.all((scale > 0)", "not np.any((scale > 0)"),
            ("one length scale for all", "scale[..., None, None]", "scale.ravel()[0]"),
            ("no jitter, draws", "covariance(x, x, length_scale) + JITTER * np.eye(x.shape[-1])", "covariance(x, x, length_scale)"),
            ("large jitter, draws", "+ JITTER * np.eye(x.shape[-1])", "+ 0.1 * np.eye(x.shape[-1])"),
            ("the other triangle", DRAWN, "(np.swapaxes(np.linalg.cholesky(matrix), -1, -2) @ normal)[..., 0]"),
            ("the covariance for its root", DRAWN, "(matrix @ normal)[..., 0]"),
            ("the same draw for all functions", "rng.standard_normal((*x.shape, 1))", "rng.standard_normal((x.shape[-1], 1))"),
            ("even draws", "rng.standard_normal((*x.shape, 1))", "rng.uniform(-(3**0.5), 3**0.5, (*x.shape, 1))"),
            ("the variance of the noise", NOISE, "max(noise, JITTER)"),
            ("no noise", NOISE, "JITTER"),
            ("noise 0 is singular", NOISE, "noise**2"),
            ("large jitter", NOISE, "max(noise**2, 1e-3)"),
            ("noise below 0", "    noise = sizes.from_0(noise=noise)\n", ""),
            ("the covariance of the keys", "between = covariance(queries, keys, length_scale)", "between = covariance(queries, keys, 1.0)"),
            ("the noise is in the variance", VARIANCE, VARIANCE.replace("1 -", "1 + noise**2 -")),
            ("a deviation for a variance", VARIANCE, f"np.sqrt(np.abs({VARIANCE}))"),
            ("the variance taken away for left", VARIANCE, VARIANCE.replace("1 - ", "")),
            ("the values twice", "return mean, 1", "return 2 * mean, 1"),
        )
    ),
    *(
        fault("datasets/functions", *words)
        for words in (
            ("no noise", "true + noise * rng", "true + 0 * rng"),
            ("the variance of the noise", "true + noise * rng", "true + noise**2 * rng"),
            ("even noise", "noise * rng.standard_normal(shape)", "noise * rng.uniform(-(3**0.5), 3**0.5, shape)"),
            ("one draw of noise a function", "rng.standard_normal(shape)", "rng.standard_normal((n, 1))"),
            ("scales even as they are", SCALES, "rng.uniform(ends[0], ends[1], size=n)"),
            ("one scale for all", SCALES, SCALES.replace("size=n", "size=1").replace("np.exp(", "np.repeat(np.exp(", 1) + ", n)"),
            ("the ends in their order alone", "np.sort(np.broadcast_to(given, (2,)))", "np.broadcast_to(given, (2,))"),
            ("another scale is drawn with", "gaussian_process.draw(x, scale, rng)", "gaussian_process.draw(x, ends[0], rng)"),
            ("half the line", "rng.uniform(-1, 1, size=shape)", "rng.uniform(0, 1, size=shape)"),
            ("the same points for all", "rng.uniform(-1, 1, size=shape)", "np.broadcast_to(rng.uniform(-1, 1, size=shape[1]), shape)"),
            ("a grid", "rng.uniform(-1, 1, size=shape)", "rng.permuted(np.broadcast_to(np.linspace(-1, 1, shape[1]), shape), axis=1)"),
            ("a generator starts anew", "rng = np.random.default_rng(seed)", "rng = np.random.default_rng(seed if isinstance(seed, int) else 0)"),
            ("the seed does not count", "rng = np.random.default_rng(seed)", "rng = np.random.default_rng(0)"),
            ("any noise", "    sizes.from_0(noise=noise)\n", ""),
            ("any length scale", "if given.shape not in ((), (2,)) or not np.all((given > 0) & np.isfinite(given)):", "if False:"),
            ("any number", "sizes.count(n=n), sizes.count(points=points)", "n, points"),
            ("the noise for the truth", "standard_normal(shape), true, scale)", "standard_normal(shape), true + noise, scale)"),
        )
    ),
    *(
        fault("datasets/reference", *words, tests=("test_text.py",))
        for words in (
            ("paragraphs twice", "if paragraph.strip() and paragraph.strip() not in seen:", "if paragraph.strip():"),
            ("paragraphs twice in another topic", "_unseen(topics[name], seen)", "_unseen(topics[name], set())"),
            ("paragraphs with their spaces", "paragraph.strip() not in seen:", "paragraph not in seen:"),
            ("empty paragraphs", "if paragraph.strip() and paragraph", "if paragraph"),
            ("no empty line after a paragraph", 'paragraph.strip("\\n") + "\\n\\n"', 'paragraph.strip("\\n") + "\\n"'),
            ("indentation lost", 'paragraph.strip("\\n") + "\\n\\n"', 'paragraph.strip() + "\\n\\n"'),
            ("parts always", "kept if whole_topics else _parts(", "_parts("),
            ("topics always", "kept if whole_topics else _parts([paragraph for topic in kept for paragraph in topic])", "kept"),
            ("one topic too few", OUT, OUT.replace("1 + ", "")),
            ("one topic too many", OUT, OUT.replace("1 + ", "2 + ")),
            ("the first topics", "np.random.default_rng(seed).permutation(len(texts))", "np.arange(len(texts))"),
            ("the seed does not count", "np.random.default_rng(seed)", "np.random.default_rng(0)"),
            ("the parts exchanged", "if i not in out]),", "if i in out]),"),
            ("both in the training part", "for i, text in enumerate(texts) if i not in out]", "for text in texts]"),
            ("any share", "    sizes.part(held_out=held_out)\n", ""),
            ("a share of 0", "sizes.part(held_out=held_out)", "sizes.share(held_out=held_out)"),
            ("the end of a part before it is full", ">= PART:", ">= PART / 2:"),
            ("a part for every paragraph", "if sum(map(len, parts[-1])) >= PART:", "if parts[-1]:"),
            ("quotation marks dropped", "text.translate(PLAIN)", "text"),
            ("a dash of two", "--.", "-~."),
            ("what is unknown becomes a line feed", "[number for number in known if number >= 0]", "[max(number, 0) for number in known]"),
            ("line feeds dropped", "if number >= 0]", "if number > 0]"),
            ("no tilde", "range(32, 127)", "range(32, 126)"),
            ("spelt by their codes", "self.vocabulary[t] for", "chr(t) for"),
            ("small integers", "dtype=np.int64)", "dtype=np.int32)"),
        )
    ),
    fault("datasets/reference", "any seed", "    sizes.count(seed=seed)\n", "", tests=("test_datasets.py::test_counts_and_seeds_are_integers",)),
    shifted("rows and columns exchanged", "first[:, 0, None, None] + np.arange(width)[:, None]", "first[:, 1, None, None] + np.arange(width)[:, None]"),
    shifted("up for down", "(size - width) // 2 + offsets", "(size - width) // 2 - offsets"),
    shifted("from the corner", "reach + (size - width) // 2 + offsets", "reach + offsets"),
    shifted("down and right where it is odd", "(size - width) // 2 + offsets", "(size - width + 1) // 2 + offsets"),
    shifted("one offset for all", "first = reach + (size - width) // 2 + offsets", "first = reach + (size - width) // 2 + offsets[:1] + 0 * offsets"),
    shifted("one image for all", "= images.reshape(-1, width, width)", "= images[:1].reshape(-1, width, width)"),
    shifted("images turned", "= images.reshape(-1, width, width)", "= images.reshape(-1, width, width).mT"),
    shifted("too little room", "int(np.abs(offsets).max(initial=0))", "min(1, int(np.abs(offsets).max(initial=0)))"),
    shifted("room on one side", "int(np.abs(offsets).max(initial=0))", "max(0, int(offsets.max(initial=0)))"),
    shifted("a round canvas", "canvas[:, reach : reach + size, reach", "np.roll(canvas, 1, axis=1)[:, reach : reach + size, reach"),
    shifted("always floating", "size + 2 * reach), dtype=images.dtype)", "size + 2 * reach))"),
    shifted("no images", "].reshape(-1, size**2)", "].reshape(len(images), -1)"),
    shifted("not square", "if width == 0 or width**2 != images.shape[-1]:", "if width == 0:", BAD_SHIFTS),
    shifted("no pixels", "if width == 0 or width**2", "if width**2", BAD_SHIFTS),
    shifted("offsets of any number", "offsets.shape != (len(images), 2) or ", "", BAD_SHIFTS),
    shifted("halves of pixels", " or not np.issubdtype(offsets.dtype, np.integer)", "", BAD_SHIFTS),
    shifted("any canvas", "if size < width:", "if False:", BAD_SHIFTS),
    *(
        fault("in_context", *words)
        for words in (
            ("queries known", "np.zeros_like(queries), np.ones_like(queries)", "queries, np.ones_like(queries)"),
            ("queries unmarked", "np.zeros_like(queries), np.ones_like(queries)", "np.zeros_like(queries), np.zeros_like(queries)"),
            ("pairs marked", "values, np.zeros_like(keys)", "values, np.ones_like(keys)"),
            ("queries first", "[pairs, asked]", "[asked, pairs]"),
            ("x and y swapped", "[keys, values,", "[values, keys,"),
            ("double", ".astype(np.float32)", ""),
            ("pairs see all pairs", "np.tri(n, dtype=bool)", "np.ones((n, n), dtype=bool)"),
            ("pairs do not see themselves", "np.tri(n, dtype=bool)", "np.tri(n, k=-1, dtype=bool)"),
            ("pairs see queries", "np.zeros((n, m), dtype=bool)", "np.ones((n, m), dtype=bool)"),
            ("one pair too many", "np.arange(n) < seen", "np.arange(n) <= seen"),
            ("queries see each other", "np.eye(m, dtype=bool)", "np.ones((m, m), dtype=bool)"),
            ("queries see all", "before = np.arange(n) < seen[:, None]", "before = np.ones((m, n), dtype=bool)"),
            ("negative numbers of pairs", "(seen < 0) | (seen", "(seen < -9) | (seen"),
            ("numbers that are not whole", "np.issubdtype(seen.dtype, np.integer)", "True"),
        )
    ),
]  # fmt: skip
