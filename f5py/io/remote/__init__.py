"""Inputs that are named by URLs: S3 and whatever else fsspec knows.

A command that is given URLs has a folder for the time of its run in which each of them is a file
(`f5py.io.remote.inputs.RemoteInputs`). Files that are read here and there (BAM, BLOW5, POD5) have nothing but holes
there at first, and `need` fetches what is read of them; others are whole copies, which are kept for later runs within
a limit.
"""

from f5py.io.remote.ranged_file import is_remote, need, ranged_file, shown
from f5py.io.remote.urls import is_url

__all__ = ["is_remote", "is_url", "need", "ranged_file", "shown"]
