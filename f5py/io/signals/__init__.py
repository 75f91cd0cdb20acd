"""Signal files: raw samples and calibration of reads in SLOW5, POD5 and fast5."""

from f5py.io.signals.choose import open_any, open_signals, open_source
from f5py.io.signals.source import SignalBlock, SignalSource

__all__ = ["SignalBlock", "SignalSource", "open_any", "open_signals", "open_source"]
