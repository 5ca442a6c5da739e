"""Certified-optimal rule ensembles and structured sparse learning on lattices."""

__version__ = "0.1.0"
