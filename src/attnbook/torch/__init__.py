"""The book's layers in PyTorch: parameters and initialisation; the formulas are attnbook's."""

from attnbook.torch.regression import KernelRegression

__all__ = ["KernelRegression"]
