"""A layer of PyTorch is a tree of modules that are called: whatever acts on calls acts on it."""

import copy
import os
import sys
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import attnbook  # noqa: E402
import attnbook.torch as book  # noqa: E402

TOKENS = torch.tensor([[1, 2, 3, 4], [4, 3, 0, 1]])
MASK = torch.ones(2, 4, dtype=torch.bool)
X = torch.linspace(-1, 1, 2 * 5 * 8).reshape(2, 5, 8)
CASES = {
    "SelfAttention": (lambda: book.SelfAttention(8), (X,)),
    "MultiHeadAttention": (lambda: book.MultiHeadAttention(8, 2), (X,)),
    "MLP": (lambda: book.MLP(8, 12, "swiglu"), (X,)),
    "EncoderBlock": (lambda: book.EncoderBlock(8, 2, 12), (X,)),
    "EncoderBlock, post": (lambda: book.EncoderBlock(8, 2, 12, norm="post"), (X,)),
    "DecoderBlock": (lambda: book.DecoderBlock(8, 2, 12), (X, X)),
    "EncoderOnly": (lambda: book.EncoderOnly(8, 3, None, 8, 2, 12, 2), (X,)),
    "DecoderOnly": (lambda: book.DecoderOnly(7, 6, 8, 2, 12, 2), (TOKENS,)),
    "AttentionOnly": (lambda: book.AttentionOnly(7, 6, 8, 2, 2), (TOKENS,)),
    "Transformer": (lambda: book.Transformer(7, 7, 6, 8, 2, 12, 2), (TOKENS, MASK, TOKENS)),
    "EncoderDecoder": (lambda: book.EncoderDecoder(7, 7, 6, 8), (TOKENS, MASK, TOKENS)),
    "AttentionPooling": (lambda: book.AttentionPooling(7, 6), (TOKENS,)),
    "GRUCell": (lambda: book.GRUCell(8, 5), (X, torch.zeros(2, 5, 5))),
}


class Adapter(nn.Module):
    """A low-rank change of a linear layer, as adapters are written: it is called, and no subclass."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, 2, bias=False)
        self.up = nn.Linear(2, base.out_features, bias=False)

    @property
    def weight(self):
        return self.base.weight

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def make(name):
    torch.manual_seed(0)
    make, given = CASES[name]
    return make().eval(), given


def owners(layer, kind):
    """Who has a submodule of a kind, under which name."""
    pairs = [(owner, *child) for owner in layer.modules() for child in owner.named_children()]
    return [(owner, name) for owner, name, part in pairs if isinstance(part, kind)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", ["at rest", "with weights", "training with weights"])
def test_hooks_of_every_part_act(name, way):
    """Also where weights are returned and entries dropped, which go other ways."""
    layer, given = make(name)
    parts = {n: m for n, m in layer.named_modules() if not isinstance(m, nn.ModuleList)}
    if way != "at rest":
        for part in [part for part in parts.values() if hasattr(part, "dropout")]:
            part.dropout = 0.25
    layer.train(way == "training with weights")
    seen = set()
    for part_name, part in parts.items():
        part.register_forward_hook(lambda *_, n=part_name: seen.add(n))
    weighted = way != "at rest" and name not in ("MLP", "GRUCell")
    layer(*given, **({"return_weights": True} if weighted else {}))
    assert seen == set(parts)


@pytest.mark.parametrize("name", CASES)
def test_an_adapter_in_place_of_a_linear_layer_acts(name):
    """Equal to the layer with the adapter's product added to the weight, and another without."""
    layer, given = make(name)
    before, merged = layer(*given), copy.deepcopy(layer)
    for owner, part in owners(layer, nn.Linear):
        setattr(owner, part, Adapter(getattr(owner, part)))
    twins = [p for p in merged.modules() if isinstance(p, nn.Linear)]
    adapters = [p for p in layer.modules() if isinstance(p, Adapter)]
    assert len(twins) == len(adapters) > 0
    with torch.no_grad():
        for twin, adapter in zip(twins, adapters, strict=True):
            twin.weight += adapter.up.weight @ adapter.down.weight
    torch.testing.assert_close(layer(*given), merged(*given), rtol=1e-4, atol=1e-5)
    assert (layer(*given) - before).abs().max() > 1e-3


@pytest.mark.parametrize("name", CASES)
def test_a_sequence_in_place_of_a_linear_layer(name):
    """Which has no weight of its own."""
    layer, given = make(name)
    before = layer(*given)
    for owner, part in owners(layer, nn.Linear):
        setattr(owner, part, nn.Sequential(getattr(owner, part), nn.Identity()))
    torch.testing.assert_close(layer(*given), before)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_dynamic_quantisation(name):
    """Its int8 layers have a method weight(), and are near the ones that they replace."""
    layer, given = make(name)
    before = layer(*given)
    small = torch.ao.quantization.quantize_dynamic(layer, {nn.Linear}, dtype=torch.qint8)
    assert "DynamicQuantizedLinear" in str(small)
    after = small(*given)
    assert 0 < (after - before).abs().max() < 0.1 * before.abs().max()


def test_the_gradient_of_a_padding_token_stays_0():
    layer, (tokens,) = make("DecoderOnly")
    layer.embedding.padding_idx = 3
    layer(tokens).sum().backward()
    rows = layer.embedding.weight.grad.abs().sum(-1)
    assert rows[3] == 0
    assert (rows[[0, 1, 2, 4]] > 0).all()


@pytest.mark.parametrize("name", ["EncoderOnly", "DecoderOnly", "Transformer"])
def test_sharded_block_by_block(name, tmp_path):
    """FSDP gathers the parameters of a block when it is called; in one process, the same numbers."""
    from torch import distributed
    from torch.distributed.fsdp import fully_shard

    layer, given = make(name)
    expected = layer(*given).detach()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    where = f"file://{tmp_path}/meeting"
    distributed.init_process_group("gloo", init_method=where, rank=0, world_size=1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mesh = distributed.device_mesh.init_device_mesh("cpu", (1,))
            for block in layer.modules():
                if isinstance(block, book.EncoderBlock | book.DecoderBlock):
                    fully_shard(block, mesh=mesh)
            fully_shard(layer, mesh=mesh)
            found = layer(*given)
            torch.testing.assert_close(found.detach(), expected)
            found.sum().backward()
    finally:
        distributed.destroy_process_group()


def under_autocast(layer, given):
    """What a layer gives in bfloat16, where PyTorch's own layers do: near the full precision."""
    expected = layer(*given)
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(*given)
    torch.testing.assert_close(found.float(), expected, rtol=0.1, atol=0.05)
    return found


@pytest.mark.parametrize("name", CASES)
def test_under_autocast(name):
    layer, given = make(name)
    under_autocast(layer, given).float().sum().backward()
    assert all(p.grad is not None for p in layer.parameters())


@pytest.mark.parametrize("score", ["additive", "general", "dot", None])
def test_every_recurrent_score_under_autocast(score):
    torch.manual_seed(0)
    under_autocast(book.EncoderDecoder(7, 7, 6, 8, score=score), (TOKENS, MASK, TOKENS))


def test_kernel_regressions_under_autocast():
    k, v = X.reshape(-1, 8), X.reshape(-1, 8)[:, :1]
    for layer in (
        book.KernelRegression(0.7),
        book.MultiHeadKernelRegression([0.5, 1.0]),
        book.MetricKernelRegression((torch.eye(8) * 1.5).tolist()),
    ):
        under_autocast(layer, (k[:5], k, v))


@pytest.mark.parametrize(
    ("name", "argument", "ours"),
    [
        ("MultiHeadAttention", "attn_mask", "mask, whose True = may attend"),
        ("MultiHeadAttention", "key_padding_mask", r"mask=~padding\[:, None, :\]"),
        ("MultiHeadAttention", "need_weights", "return_weights"),
        ("MultiHeadAttention", "is_causal", "causal"),
        ("EncoderBlock", "src_mask", "mask, whose True = may attend"),
        ("EncoderBlock", "src_key_padding_mask", r"mask=~padding\[:, None, :\]"),
        ("DecoderBlock", "tgt_mask", "mask, whose True = may attend"),
        ("DecoderBlock", "memory_key_padding_mask", r"memory_mask=~padding\[:, None, :\]"),
        ("DecoderBlock", "colour", "another argument"),
    ],
)
def test_arguments_of_torchs_own_layers_are_told_ours(name, argument, ours):
    layer, given = make(name)
    with pytest.raises(TypeError, match=f"{argument}: got an argument of torch.nn's layer.*{ours}"):
        layer(*given, **{argument: None})


@pytest.mark.parametrize("grad", [False, True])
def test_a_small_call_enters_few_functions(grad):
    """Arguments are checked once, then come the formulas: who follows a call finds them soon."""
    layer, x = book.MultiHeadAttention(8, 2), torch.zeros(2, 5, 8)
    package, entered = str(Path(attnbook.__file__).parent), []

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package) and code.co_name[0] != "<":
            entered.append(code.co_filename)

    with torch.set_grad_enabled(grad):
        layer(x)  # what is made once, at the first call, does not count
        sys.setprofile(note)
        try:
            layer(x)
        finally:
            sys.setprofile(None)
    assert len(entered) <= (30 if grad else 36)  # without a gradient the fused kernel pads and cuts
    assert len(set(entered)) <= 6
