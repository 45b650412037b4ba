"""Kernels: which backend has which kernel for an operation, what it costs and promises."""
