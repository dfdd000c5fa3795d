"""Single layers: linear maps, activations, norms, the MLP."""
