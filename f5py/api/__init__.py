"""The commands as Python functions; users find them in `f5py` itself."""
