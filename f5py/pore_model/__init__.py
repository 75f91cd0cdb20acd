"""Pore models: the expected current of every k-mer, built in or read from a file."""

from f5py.pore_model.model import BUILTIN_MODELS, PoreModel, builtin, check_same_k, named_model
from f5py.pore_model.text_file import read_model

__all__ = ["BUILTIN_MODELS", "PoreModel", "builtin", "check_same_k", "named_model", "read_model"]
