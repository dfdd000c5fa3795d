"""The formulas by faster ways, each equal to it: PyTorch's fused kernel, chunks of queries."""
