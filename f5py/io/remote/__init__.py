"""Inputs named by URLs: S3 and the other file systems of fsspec.

`f5py.pipeline.remote_inputs.RemoteInputs` gives each run a folder with a local file per URL. BAM, BLOW5 and POD5 are
sparse files, and `fetch_ranges` fetches the ranges that are read. Others are whole copies, cached for later runs.
"""

from f5py.io.remote.ranged_file import fetch_ranges, is_remote, ranged_file, shown
from f5py.io.remote.urls import is_url

__all__ = ["fetch_ranges", "is_remote", "is_url", "ranged_file", "shown"]
