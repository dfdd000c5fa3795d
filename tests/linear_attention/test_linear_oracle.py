"""The gated delta rule as transformers has it for published models, in PyTorch."""

import numpy as np
import pytest

from attnbook.linear_attention import chunked, recurrent

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next")


@pytest.mark.parametrize("name", ["recurrent", "chunk"])
def test_gated_delta_equals_theirs(rng, name):
    """Two heads, a length that no chunk divides, a state to start from; theirs is float32."""
    function = getattr(theirs, f"torch_{name}_gated_delta_rule")
    shapes = (2, 70, 2, 5), (2, 70, 2, 5), (2, 70, 2, 3), (2, 2, 5, 3)
    q, k, v, state = (torch.tensor(rng.normal(size=s), dtype=torch.float32) for s in shapes)
    k = torch.nn.functional.normalize(k, dim=-1)
    decay, beta = torch.tensor(rng.uniform(0.5, 1, size=(2, 2, 70, 2)), dtype=torch.float32)
    expected, last = function(
        q, k, v, g=decay.log(), beta=beta, initial_state=state, output_final_state=True
    )
    heads = [a.transpose(1, 2) for a in (q / np.sqrt(5), k, v)]  # their queries are scaled
    how = {"decay": decay.transpose(1, 2), "beta": beta.transpose(1, 2), "state": state}
    for form in (recurrent, chunked):
        outputs, ours = form(*heads, **how)
        torch.testing.assert_close(outputs.transpose(1, 2), expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(ours, last, rtol=1e-4, atol=1e-5)
