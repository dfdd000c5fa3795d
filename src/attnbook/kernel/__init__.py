"""Kernel regression, its kernels, and what else averages with a kernel."""
