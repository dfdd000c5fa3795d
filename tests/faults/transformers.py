"""Mistakes in the three transformers, in their cache, and in what checks their tokens."""

from __future__ import annotations

from faults.heads import found
from faults.planting import Fault, fault

AT_WORK, LAYERS = "test_transformer.py", "test_transformer_layers.py"
SETS = f"{AT_WORK}::test_encoder_only_equals_the_loop"
WRITERS = f"{AT_WORK}::test_decoder_only_equals_the_loop"
PAIRS = f"{AT_WORK}::test_transformer_equals_the_loop"
UNASKED = f"{AT_WORK}::test_without_weights_there_are_none"
INTEGERS = f"{AT_WORK}::test_every_kind_of_integer"
CACHE = f"{AT_WORK}::test_the_cache_equals_the_full_pass"
CROSS = f"{AT_WORK}::test_the_cache_of_a_translation_equals_the_full_pass"
HOLDS = f"{AT_WORK}::test_what_a_cache_holds"
ROWS = f"{AT_WORK}::test_rows_of_different_lengths"
FULL = f"{AT_WORK}::test_a_full_cache_is_an_error"
NAMES = f"{LAYERS}::test_names_and_shapes"
TOLD = f"{LAYERS}::test_sizes_are_kept_and_parts_are_told"
STARTS = f"{LAYERS}::test_starts_differ_from_part_to_part"
SIZES = f"{LAYERS}::test_bad_sizes"
REFUSES = f"{LAYERS}::test_an_encoder_refuses"
TOKENS = f"{LAYERS}::test_bad_tokens"
LONG = f"{LAYERS}::test_too_many_tokens"
STEPS = f"{LAYERS}::test_bad_steps"
SENTENCES = f"{LAYERS}::test_bad_sentences"
PARTS = "test_decoding.py::test_a_state_of_several_arrays"

BLOCK = "x = layer(x, mask, return_weights=keep, causal=causal)"
READS = "x = layer(x, memory.values, None, memory.mask, return_weights=keep, causal=True)"
FORETELLS = "encode(model.decoder, model.decoder_norm, x, None, keep, causal=True)"
KNOWN = "embed(model.embedding, tokens) + model.position[: tokens.shape[-1]]"
EMBEDDED = "embed(model.embedding, token) + model.position[cache.length]"
TRANSLATED = "embed(model.target_embedding, token) + model.target_position[cache.length]"
SOURCE = "check.at_most(self.max_length, source=source[..., None], written=written[..., None])"
BOTH_SIDES = "check.sentences(source, mask, written, self.source_vocab, self.target_vocab)"
ONE_SIDE = "check.sentences(source, mask, source, self.source_vocab, self.source_vocab)"
ALONE = "check.at_most(self.max_length, source=source[..., None])\n"
NEXT = "check.next_token(self.target_vocab, self.max_length, token, cache.length)"
NEXT_ONE = "check.next_token(self.vocab_size, self.max_length, token, cache.length)"
KEPT = "starting.keep_sizes(self, embed_dim, num_heads, mlp_dim, num_layers, norm, activation)"


def formula(tests: str, words: str, original: str, changed: str) -> Fault:
    return found("transformer", "torch", tests, words, original, changed)


FAULTS = [
    # encoders, and decoders as a full pass
    formula(WRITERS, "no last norm", "return normed(norm, x), kept", "return x, kept"),
    found("blocks", "jax", WRITERS, "bias of the last norm dropped", "norm.weight, norm.bias, eps=norm.eps)", "norm.weight, None, eps=norm.eps)"),
    formula(SETS, "mask ignored", BLOCK, BLOCK.replace("mask", "None")),
    formula(UNASKED, "a list of nothing, encoder", "return normed(norm, x), kept", "return normed(norm, x), kept or [None for _ in layers]"),
    formula(WRITERS, "one block again and again", "for layer in layers:", "for layer in [layers[0]] * len(layers):"),
    formula(WRITERS, "blocks in the other order", "for layer in layers:", "for layer in layers[::-1]:"),
    formula(SETS, "positions from the end", "model.position[: x.shape[-2]]", "model.position[-x.shape[-2] :]"),
    formula(SETS, "positions left out", "if model.position is not None:", "if False:"),
    formula(SETS, "one position for all", "model.position[: x.shape[-2]]", "model.position[0]"),
    formula(SETS, "nothing is read out", "return linear(model.readout, stream), weights\n\n\ndef foretell", "return stream, weights\n\n\ndef foretell"),
    formula(WRITERS, "the future is seen", FORETELLS, FORETELLS.replace(", causal=True", "")),
    formula(WRITERS, "the future is seen in every block", BLOCK, BLOCK.replace(", causal=causal", "")),
    formula(SETS, "an encoder that sees no future", "keep: bool = False,\n    causal: bool = False,", "keep: bool = False,\n    causal: bool = True,"),
    formula(WRITERS, "weights of the last layer first", "            x, weights = x\n            kept.append(weights)", "            x, weights = x\n            kept.insert(0, weights)"),
    formula(WRITERS, "the past is not seen", FORETELLS, FORETELLS.replace("None, keep, causal=True", "heads.with_causal(None, True, x).mT, keep")),
    formula(WRITERS, "no positions, decoder", KNOWN, "embed(model.embedding, tokens)"),
    formula(WRITERS, "the last positions", KNOWN, KNOWN.replace("[: tokens.shape[-1]]", "[-tokens.shape[-1] :]")),
    # encoder and decoder
    formula(PAIRS, "padding is read", "mask = mask[..., None, :]", "mask = mask[..., None, :] | True"),
    formula(PAIRS, "padding is read by the decoder", READS, READS.replace("memory.mask", "None")),
    formula(PAIRS, "padding is read by the encoder", "embedded, mask)[0], mask)", "embedded, None)[0], mask)"),
    formula(PAIRS, "the target's positions for the source", "model.source_position[:", "model.target_position[:"),
    formula(PAIRS, "the target's embedding for the source", "embed(model.source_embedding, source)", "embed(model.target_embedding, source % 11)"),
    formula(PAIRS, "the encoder's norm for the decoder", "normed(model.decoder_norm, x)), kept", "normed(model.encoder_norm, x)), kept"),
    formula(PAIRS, "no last norm, decoder", "linear(model.output, normed(model.decoder_norm, x)), kept", "linear(model.output, x), kept"),
    formula(PAIRS, "what is written sees the future", READS, READS.replace(", causal=True", "")),
    formula(PAIRS, "the source is not read", READS, READS.replace("memory.values, None, memory.mask", "x, None, None")),
    formula(PAIRS, "what is read doubled", "embedded, mask)[0], mask)", "embedded, mask)[0] * 2, mask)"),
    formula(PAIRS, "the same weights for all layers", "kept.append(weights)\n    return linear", "kept[:] = [weights] * (len(kept) + 1)\n    return linear"),
    formula(PAIRS, "weights to what is written", "x, _, weights = x", "x, weights, _ = x"),
    formula(PAIRS, "padding of what is written", READS, READS.replace("None, memory.mask", "memory.mask, None")),
    formula(UNASKED, "a list of nothing", "normed(model.decoder_norm, x)), kept", "normed(model.decoder_norm, x)), kept or [None for _ in model.decoder]"),
    # the cache
    formula(CACHE, "the position of the token before", EMBEDDED, EMBEDDED.replace("cache.length", "cache.length - 1")),
    formula(CACHE, "always the first position", EMBEDDED, EMBEDDED.replace("cache.length", "0 * cache.length")),
    formula(CROSS, "always the first position, translation", TRANSLATED, TRANSLATED.replace("cache.length", "0 * cache.length")),
    formula(CROSS, "the source's positions", TRANSLATED, TRANSLATED.replace("target_position", "source_position")),
    formula(CACHE, "a token does not see itself, cache", "(slots <= cache.length[:, None])", "((slots < cache.length[:, None]) | (cache.length[:, None] == 0))"),
    formula(CACHE, "places not written are seen", "(slots <= cache.length[:, None])", "(slots <= cache.length[:, None] + 1)"),
    formula(CACHE, "written over the token before", "here = (slots == cache.length[:, None])", "here = (slots == xp.clip(cache.length - 1, 0, None)[:, None])"),
    formula(CACHE, "written everywhere", "xp.where(here, k, cache.keys[:, number])", "xp.where(here | True, k, cache.keys[:, number])"),
    formula(CACHE, "keys for values", "xp.where(here, v, cache.values[:, number])", "xp.where(here, k, cache.values[:, number])"),
    formula(CACHE, "the first layer's keys for all", "cache.keys[:, number]", "cache.keys[:, 0]"),
    formula(CACHE, "the first layer's values for all", "cache.values[:, number]", "cache.values[:, 0]"),
    formula(CACHE, "the length stays", "cache.length + 1)", "cache.length)"),
    formula(CACHE, "no last norm, cache", "normed(model.decoder_norm, x)[:, 0], kept", "x[:, 0], kept"),
    formula(CACHE, "heads not merged by their output", "linear(layer.output, heads.merge_heads(found))", "heads.merge_heads(found)"),
    formula(CROSS, "the memory is not read", "if memory is None:", "if True:"),
    formula(CROSS, "padding is read in a step", "memory.values, memory.mask, keep=True)", "memory.values, None, keep=True)"),
    formula(CROSS, "weights of the first layer", "mean(kept[-1], axis=1)", "mean(kept[0], axis=1)"),
    formula(CROSS, "weights of one head", "array_namespace(x).mean(kept[-1], axis=1)[:, 0]", "kept[-1][:, 0, 0]"),
    formula(ROWS, "one length for all rows", "here = (slots == cache.length[:, None])", "here = (slots == cache.length[:1, None])"),
    formula(ROWS, "one length for all queries", "so_far = (slots <= cache.length[:, None])", "so_far = (slots <= cache.length[:1, None])"),
    formula(HOLDS, "a cache in float32", "xp.zeros(shape, dtype=like.dtype, device=device(like))", "xp.zeros(shape, dtype=xp.float32, device=device(like))"),
    formula(HOLDS, "a cache of ones", "keys = xp.zeros(shape", "keys = xp.ones(shape"),
    found("transformer", "jax", CACHE, "another integer than the length's", "xp.arange(cache.keys.shape[-2], dtype=cache.length.dtype, device", "xp.arange(cache.keys.shape[-2], device"),
    # the layers
    *(
        found(f"{library}/transformer", library, *words)
        for library in ("torch", "jax")
        for words in (
            (SENTENCES, "what is written not looked at", BOTH_SIDES, "pass"),
            (SENTENCES, "vocabularies exchanged", BOTH_SIDES, BOTH_SIDES.replace("self.source_vocab, self.target_vocab", "self.target_vocab, self.source_vocab")),
            (SENTENCES, "any length", SOURCE, "pass"),
            (SENTENCES, "any length of what is written", SOURCE, SOURCE.replace(", written=written[..., None]", "")),
            (SENTENCES, "what is read not looked at", ONE_SIDE, "pass"),
            (SENTENCES, "any length, encoded", ALONE, "pass\n"),
            (STEPS, "any token", NEXT, "pass"),
            (STEPS, "a token of the source", NEXT, NEXT.replace("target_vocab", "source_vocab")),
            (FULL, "a cache beyond its end", NEXT, NEXT.replace("self.max_length", "99")),
            (SIZES, "any vocabulary", "sizes.size(target_vocab=target_vocab)", "target_vocab"),
            (SIZES, "any longest", "sizes.size(max_length=max_length)", "max_length"),
            (TOLD, "blocks not told of their norm", "norm=model.norm, activation=model.activation", "activation=model.activation"),
            (TOLD, "blocks not told of their activation", "norm=model.norm, activation=model.activation", "norm=model.norm"),
            (NAMES, "one block too many", "model.num_layers)", "model.num_layers + 1)"),
            (PAIRS, "weights for logits", "return (logits, weights) if return_weights else logits", "return (logits, weights) if return_weights else weights"),
        )
    ),
    *(found("starting", library, STARTS, f"a small start, {library}", "SCALE = 0.3", "SCALE = 0.02") for library in ("torch", "jax")),
    *(
        found("torch/transformer", "torch", *words)
        for words in (
            (INTEGERS, "small integers as they are", "self, source.long(), mask, written.long(), return_weights", "self, source, mask, written, return_weights"),
            (INTEGERS, "small integers as they are, encoded", "transformer.memorise(self, source.long(), mask)", "transformer.memorise(self, source, mask)"),
            (INTEGERS, "a small integer as it is", "cache, token.long())", "cache, token)"),
            (NAMES, "one position for both", "self.target_position = nn.Parameter(SCALE * torch.randn(max_length, embed_dim))", "self.target_position = self.source_position"),
            (STARTS, "embeddings start large", "_weight=SCALE * torch.randn", "_weight=torch.randn"),
        )
    ),
    *(
        found("jax/transformer", "jax", *words)
        for words in (
            (STARTS, "embeddings start alike", "small(keys[1], self.target_vocab", "small(keys[0], self.target_vocab"),
            (STARTS, "positions start alike", "small(keys[3], self.max_length", "small(keys[2], self.max_length"),
            (STARTS, "blocks start alike", "for one in jax.random.split(key, model.num_layers)", "for one in [key] * model.num_layers"),
            (STARTS, "decoder starts as encoder", "DecoderBlock, keys[5])", "DecoderBlock, keys[4])"),
            (STARTS, "small numbers are even", "jax.random.normal(key, shape)", "jax.random.uniform(key, shape)"),
        )
    ),
    *(
        found(f"{library}/halves", library, *words)
        for library in ("torch", "jax")
        for words in (
            (REFUSES, "any width", "arguments.widths(self.input_dim, x=x)", "pass"),
            (REFUSES, "any length", "check.at_most(self.max_length, x=x)", "pass"),
            (SETS, "mask ignored", "transformer.read(self, x, mask, return_weights)", "transformer.read(self, x, None, return_weights)"),
            (SETS, "weights for what is said", "if return_weights else said", "if return_weights else weights"),
            (TOKENS, "any tokens", "check.numbers(self.vocab_size, self.max_length, tokens=tokens)", "pass"),
            (LONG, "tokens of any length", "check.numbers(self.vocab_size, self.max_length, tokens=tokens)", "check.numbers(self.vocab_size, tokens=tokens)"),
            (STEPS, "any batch", "sizes.size(batch=batch)", "int(batch)"),
            (STEPS, "any next token", NEXT_ONE, "pass"),
            (FULL, "a cache beyond its end", NEXT_ONE, NEXT_ONE.replace("self.max_length", "99")),
            (SIZES, "any input", "sizes.size(input_dim=input_dim)", "input_dim"),
            (SIZES, "any output", "sizes.size(output_dim=output_dim)", "output_dim"),
            (SIZES, "any vocabulary", "sizes.size(vocab_size=vocab_size)", "vocab_size"),
            (NAMES, "positions for all", "if self.max_length is not None:", "if True:\n            self.max_length = self.max_length or 7"),
            (TOLD, "another number of layers", "mlp_dim: int = 512,\n        num_layers: int = 2", "mlp_dim: int = 512,\n        num_layers: int = 3"),
        )
    ),
    *(
        found("torch/halves", "torch", *words)
        for words in (
            (INTEGERS, "small integers as they are", "tokens.long()", "tokens"),
            (INTEGERS, "a small integer as it is", "token.long()", "token"),
            (STARTS, "positions start large", "self.position = nn.Parameter(SCALE * torch.randn(max_length", "self.position = nn.Parameter(torch.randn(max_length"),
            (STARTS, "positions of an encoder start large", "nn.Parameter(SCALE * torch.randn(self.max_length", "nn.Parameter(torch.randn(self.max_length"),
        )
    ),
    found("jax/halves", "jax", STARTS, "positions start as the embedding", "small(keys[1], self.max_length, self.embed_dim)\n        self.decoder", "small(keys[0], self.max_length, self.embed_dim)\n        self.decoder"),
    # a beam whose state is several arrays
    *(
        found("decoding", "torch", PARTS, *words)
        for words in (
            ("the parts are not followed", "(_rows(part, rows) for part in state)", "state"),
            ("the first part alone is followed", "(_rows(part, rows) for part in state)", "(_rows(state[0], rows), *state[1:])"),
            ("a state becomes a plain tuple", "type(state)(*(_rows(part, rows) for part in state))", "tuple(_rows(part, rows) for part in state)"),
            ("parts within parts are not followed", "(_rows(part, rows) for part in state)", "(part if isinstance(part, tuple) else _rows(part, rows) for part in state)"),
            ("a state of several arrays as one", "if isinstance(state, tuple):", "if False:"),
            ("another axis than the rows", "take(state, rows, axis=0)", "take(state, rows, axis=-1)"),
            ("the rows in their own order", "take(state, rows, axis=0)", "take(state, array_namespace(rows).sort(rows)[0], axis=0)"),
        )
    ),
    # what is checked
    *(
        fault("tokens", *words)
        for words in (
            ("the longest is too long, vectors", "longest is not None and n > longest", "longest is not None and n >= longest"),
            ("vectors of any length", "if longest is not None and n > longest:", "if False:"),
            ("the width for the length", "n = array.shape[-2]", "n = array.shape[-1]"),
            ("the batch for the length", "n = array.shape[-2]", "n = array.shape[0]"),
            ("any next token", "    numbers(vocab_size, token=token)\n    xp = one_library(token", "    xp = one_library(token"),
            ("a next token for fewer rows", "if tuple(token.shape) != tuple(length.shape):", "if len(token.shape) != 1:"),
            ("the last place is not filled", "known_true(xp.any(length >= longest))", "known_true(xp.any(length >= longest - 1))"),
            ("a place too many", "known_true(xp.any(length >= longest))", "known_true(xp.any(length > longest))"),
            ("one full row is no matter", "known_true(xp.any(length >= longest))", "known_true(xp.all(length >= longest))"),
        )
    ),
    *(
        fault("sizes", *words)
        for words in (
            ("any choice", "if not isinstance(name, str) or name not in names:", "if False:"),
            ("the first choice alone", "if not isinstance(name, str) or name not in names:", "if name != names[0]:"),
            ("a choice within a string", "if not isinstance(name, str) or name not in names:", 'if str(name) not in ", ".join(names):'),
            ("or after every name", '" or ".join([", ".join(map(repr, names[:-1])), repr(names[-1])])', '" or ".join(map(repr, names))'),
        )
    ),
    *(
        fault("starting", *words)
        for words in (
            ("any norm", 'choice(("pre", "post"), norm=norm)', "norm"),
            ("any activation", "choice(tuple(ACTIVATIONS), activation=activation)", "activation"),
            ("any number of heads is kept", "model.embed_dim, model.num_heads, _, _ = head_shape(embed_dim, num_heads, None)", "model.embed_dim, model.num_heads = size(embed_dim=embed_dim), size(num_heads=num_heads)"),
            ("layers of NumPy's", "size(mlp_dim=mlp_dim), size(num_layers=num_layers)", "size(mlp_dim=mlp_dim), num_layers"),
            ("sizes exchanged", "model.mlp_dim, model.num_layers =", "model.num_layers, model.mlp_dim ="),
        )
    ),
]  # fmt: skip
