"""``python -m f5py``: the same as the ``f5py`` command."""

import os
import sys

if __name__ == "__main__":
    if sys.path[0] == os.getcwd() != os.path.dirname(os.path.dirname(os.path.abspath(__file__))):
        del sys.path[0]  # nothing is imported from the working folder
    from f5py.cli import main

    main()
