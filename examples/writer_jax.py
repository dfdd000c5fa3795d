"""A transformer learns to write: python examples/writer_jax.py [your text]"""

import json
import math
import sys
from hashlib import sha256
from pathlib import Path
from pydoc_data.topics import topics

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.flax import save_file

WIDTH, HEADS, BLOCKS, WINDOW = 128, 4, 2, 64
ROWS, STEPS, RATE = 16, 2000, 4e-3
PARTS = ("query", "key", "value", "output")


def linear(x, weight, bias):
    return x @ weight.T + bias


def attention(p, name, x):  # (rows, n, width)
    query, key, value, output = (p[f"{name}.{part}"] for part in PARTS)
    parts = linear(x, *query), linear(x, *key), linear(x, *value)
    q, k, v = (  # (rows, heads, n, d)
        y.reshape(*y.shape[:2], HEADS, -1).swapaxes(1, 2) for y in parts
    )
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (rows, heads, n, n)
    seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf))
    return linear((weights @ v).swapaxes(1, 2).reshape(x.shape), *output)


def parameters(vocab, rng):
    shapes, norms = {"readout": (vocab, WIDTH)}, ["decoder_norm"]
    for block in (f"decoder.{b}" for b in range(BLOCKS)):
        for part in PARTS:
            shapes[f"{block}.attention.{part}"] = WIDTH, WIDTH
        shapes[f"{block}.mlp.hidden"] = 4 * WIDTH, WIDTH
        shapes[f"{block}.mlp.output"] = WIDTH, 4 * WIDTH
        norms += [f"{block}.attention_norm", f"{block}.mlp_norm"]
    p = {name: (np.ones(WIDTH), np.zeros(WIDTH)) for name in norms}
    for name, shape in shapes.items():  # as torch.nn.Linear begins
        most = shape[1] ** -0.5
        bias = rng.uniform(-most, most, shape[0])
        p[name] = rng.uniform(-most, most, shape), bias
    p["embedding"] = 0.3 * rng.normal(size=(vocab, WIDTH))
    p["position"] = 0.3 * rng.normal(size=(WINDOW, WIDTH))
    return jax.tree.map(jnp.float32, p)


def norm(x, gain, bias):
    x = x - x.mean(-1, keepdims=True)
    return gain * x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) + bias


def mlp(p, name, x):
    hidden = jax.nn.gelu(linear(x, *p[f"{name}.hidden"]), approximate=False)
    return linear(hidden, *p[f"{name}.output"])


@jax.jit
def logits_of(p, tokens):  # (rows, n)
    x = p["embedding"][tokens] + p["position"][: tokens.shape[1]]
    for b in (f"decoder.{b}" for b in range(BLOCKS)):
        inputs = norm(x, *p[f"{b}.attention_norm"])
        x = x + attention(p, f"{b}.attention", inputs)
        x = x + mlp(p, f"{b}.mlp", norm(x, *p[f"{b}.mlp_norm"]))
    return linear(norm(x, *p["decoder_norm"]), *p["readout"])


def loss_of(p, rows):  # every token predicts the next one
    log_p = jax.nn.log_softmax(logits_of(p, rows[:, :-1]))
    return -jnp.take_along_axis(log_p, rows[:, 1:, None], axis=-1).mean()


@jax.jit
def adam_step(p, mu, nu, t, rate, rows):  # the t-th
    value, g = jax.value_and_grad(loss_of)(p, rows)
    length = jnp.sqrt(sum((x**2).sum() for x in jax.tree.leaves(g)))
    g = jax.tree.map(lambda g: g / jnp.maximum(length, 1), g)
    mu = jax.tree.map(lambda mu, g: 0.9 * mu + 0.1 * g, mu, g)
    nu = jax.tree.map(lambda nu, g: 0.999 * nu + 0.001 * g**2, nu, g)

    def moved(p, mu, nu):
        size = jnp.sqrt(nu / (1 - 0.999**t)) + 1e-8
        return p - rate * mu / (1 - 0.9**t) / size

    return jax.tree.map(moved, p, mu, nu), mu, nu, value


def train_in_jax(p, text, steps, rng):
    mu = nu = jax.tree.map(jnp.zeros_like, p)
    for t in range(steps):
        first = rng.integers(len(text) - WINDOW, size=(ROWS, 1))
        rows = text[first + np.arange(WINDOW + 1)]
        rate = RATE * (1 + math.cos(math.pi * t / steps)) / 2
        rate *= min(1, (t + 1) / 50)
        p, mu, nu, value = adam_step(p, mu, nu, t + 1, rate, rows)
        yield p, float(value) / math.log(2)  # bits per character


def generate_in_jax(p, tokens, length, rng, temperature=0.7):
    for _ in range(length):
        near = tokens[-WINDOW:]  # filled up with what nothing sees
        padded = np.pad(near, (0, WINDOW - len(near)))
        logits = logits_of(p, padded[None])[0, len(near) - 1] / temperature
        drawn = rng.choice(len(logits), p=np.asarray(jax.nn.softmax(logits)))
        tokens = np.append(tokens, drawn)
    return tokens


def read(file):  # the reader's own text
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        sys.exit(f"{file} cannot be read as text in UTF-8: {error}")
    if len(text) < 20 * WINDOW:  # a tenth, two windows, is held out
        sys.exit(f"{file}: {len(text)} characters, fewer than {20 * WINDOW}")
    return text


def held_out_bits(p, text):  # windows overlap, the second half counts
    half, bits = WINDOW // 2, []
    starts = np.arange(0, len(text) - WINDOW, half)
    for first in np.array_split(starts, math.ceil(len(starts) / 64)):
        rows = text[first[:, None] + np.arange(WINDOW + 1)]
        log_p = jax.nn.log_softmax(logits_of(p, rows[:, :-1]))[:, half:]
        of_next = rows[:, half + 1 :, None]
        bits.append(-jnp.take_along_axis(log_p, of_next, axis=-1).ravel())
    return float(jnp.concatenate(bits).mean()) / math.log(2)


def save(file, p, vocabulary):  # chapter 8's page can open it
    sizes = {"vocab_size": len(vocabulary), "max_length": WINDOW}
    sizes |= {"embed_dim": WIDTH, "num_heads": HEADS}
    sizes |= {"mlp_dim": 4 * WIDTH, "num_layers": BLOCKS}
    about = {"kind": "DecoderOnly", "sizes": json.dumps(sizes)}
    about["characters"] = "".join(vocabulary)
    state = {"embedding.weight": p["embedding"], "position": p["position"]}
    for name in p.keys() - {"embedding", "position"}:
        state[f"{name}.weight"], state[f"{name}.bias"] = p[name]
    numbers = b"".join(np.asarray(state[name]) for name in sorted(state))
    save_file(state, file, about | {"sha256": sha256(numbers).hexdigest()})


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    pages = "\n\n".join(topics[name] for name in sorted(topics))
    characters = "\n\n".join(dict.fromkeys(pages.split("\n\n")))
    if len(sys.argv) > 1:
        characters = read(sys.argv[1])
    vocabulary = sorted(set(characters))
    number = {character: n for n, character in enumerate(vocabulary)}
    text = np.array([number[character] for character in characters])
    cut = len(text) * 9 // 10
    p = parameters(len(vocabulary), rng)
    for step, found in enumerate(train_in_jax(p, text[:cut], STEPS, rng)):
        p, bits = found
        if step % 200 == 0:
            print(f"step {step:4d}  {bits:.2f} bits per character")
    save("writer.safetensors", p, vocabulary)
    bits = held_out_bits(p, text[cut:])
    print(f"held out: {bits:.2f} bits (the last tenth, not the chapter's)")
    written = generate_in_jax(p, text[:1], 400, rng)
    print("".join(vocabulary[token] for token in written))
