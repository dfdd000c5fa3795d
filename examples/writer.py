"""A transformer learns to write: python examples/writer.py [your text]"""

import json
import math
import sys
from hashlib import sha256
from pathlib import Path
from pydoc_data.topics import topics

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import cross_entropy, gelu

WIDTH, HEADS, BLOCKS, WINDOW = 128, 4, 2, 64
ROWS, STEPS, RATE = 16, 2000, 4e-3


class Attention(nn.Module):
    def __init__(self, width=WIDTH, heads=HEADS):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (
            nn.Linear(width, width) for _ in range(4)
        )

    def forward(self, x):  # (rows, n, width)
        parts = self.query(x), self.key(x), self.value(x)
        q, k, v = (  # (rows, heads, n, d)
            y.unflatten(2, (self.heads, -1)).transpose(1, 2) for y in parts
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # (rows, heads, n, n)
        later = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, -math.inf).softmax(-1)
        return self.output((weights @ v).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.hidden = nn.Linear(width, 4 * width)
        self.output = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.output(gelu(self.hidden(x)))


class Block(nn.Module):
    def __init__(self, width=WIDTH, heads=HEADS):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp_norm, self.mlp = nn.LayerNorm(width), MLP(width)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Writer(nn.Module):
    def __init__(self, vocab, width=WIDTH, blocks=BLOCKS):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.position = nn.Parameter(0.3 * torch.randn(WINDOW, width))
        nn.init.normal_(self.embedding.weight, std=0.3)
        self.decoder = nn.Sequential(*(Block(width) for _ in range(blocks)))
        self.decoder_norm = nn.LayerNorm(width)
        self.readout = nn.Linear(width, vocab)

    def forward(self, tokens):  # (rows, n)
        x = self.embedding(tokens) + self.position[: tokens.shape[1]]
        return self.readout(self.decoder_norm(self.decoder(x)))


def text_loss(model, rows):  # every token predicts the next one
    logits = model(rows[:, :-1])  # (rows, n, vocab)
    return cross_entropy(logits.mT, rows[:, 1:])  # wants (rows, vocab, n)


def train(model, text, steps, loss_of=text_loss):
    optimiser = torch.optim.Adam(model.parameters())
    for step in range(steps):
        first = torch.randint(len(text) - WINDOW, (ROWS, 1))
        loss = loss_of(model, text[first + torch.arange(WINDOW + 1)])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rate = RATE * (1 + math.cos(math.pi * step / steps)) / 2
        optimiser.param_groups[0]["lr"] = rate * min(1, (step + 1) / 50)
        optimiser.step()
        yield loss.item() / math.log(2)  # bits per character


@torch.no_grad()
def generate(model, tokens, length, temperature=0.7):
    for _ in range(length):
        logits = model(tokens[None, -WINDOW:])[0, -1]
        drawn = torch.multinomial((logits / temperature).softmax(0), 1)
        tokens = torch.cat([tokens, drawn])
    return tokens


def read(file):  # the reader's own text
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        sys.exit(f"{file} cannot be read as text in UTF-8: {error}")
    if len(text) < 20 * WINDOW:  # a tenth, two windows, is held out
        sys.exit(f"{file}: {len(text)} characters, fewer than {20 * WINDOW}")
    return text


@torch.no_grad()
def held_out_bits(model, text):  # windows overlap, the second half counts
    half, bits = WINDOW // 2, 0.0
    rows = text.unfold(0, WINDOW + 1, half)
    for part in rows.split(64):
        logits = model(part[:, :-1])[:, half:]
        bits += len(part) * cross_entropy(logits.mT, part[:, half + 1 :])
    return bits.item() / len(rows) / math.log(2)


def save(file, model, vocabulary):  # chapter 8's page can open it
    sizes = {"vocab_size": len(vocabulary), "max_length": WINDOW}
    sizes |= {"embed_dim": WIDTH, "num_heads": HEADS}
    sizes |= {"mlp_dim": 4 * WIDTH, "num_layers": BLOCKS}
    about = {"kind": "DecoderOnly", "sizes": json.dumps(sizes)}
    about["characters"] = "".join(vocabulary)
    state = model.state_dict()
    numbers = b"".join(state[name].numpy() for name in sorted(state))
    save_file(state, file, about | {"sha256": sha256(numbers).hexdigest()})


if __name__ == "__main__":
    torch.manual_seed(0)
    pages = "\n\n".join(topics[name] for name in sorted(topics))
    characters = "\n\n".join(dict.fromkeys(pages.split("\n\n")))
    if len(sys.argv) > 1:
        characters = read(sys.argv[1])
    vocabulary = sorted(set(characters))
    number = {character: n for n, character in enumerate(vocabulary)}
    text = torch.tensor([number[character] for character in characters])
    known, held_out = text.split(len(text) * 9 // 10 + 1)
    model = Writer(len(vocabulary))
    for step, bits in enumerate(train(model, known, STEPS)):
        if step % 200 == 0:
            print(f"step {step:4d}  {bits:.2f} bits per character")
    save("writer.safetensors", model, vocabulary)
    bits = held_out_bits(model, held_out)
    print(f"held out: {bits:.2f} bits (the last tenth, not the chapter's)")
    print("".join(vocabulary[t] for t in generate(model, text[:1], 400)))
