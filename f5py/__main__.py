"""``python -m f5py``: the same as the ``f5py`` command."""

from f5py.cli import main

if __name__ == "__main__":
    main()
