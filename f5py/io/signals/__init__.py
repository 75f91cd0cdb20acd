"""Signal files: raw samples and calibration of reads in SLOW5, POD5 and fast5."""

from f5py.io.signals.source import SignalBlock, SignalSource
from f5py.io.signals.source_choice import open_any, open_signals, open_source

__all__ = ["SignalBlock", "SignalSource", "open_any", "open_signals", "open_source"]
