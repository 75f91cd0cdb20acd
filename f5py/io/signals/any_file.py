"""Reader of mixed fast5 and POD5 files."""

from f5py.io.files.signal_format import file_kind
from f5py.io.signals.source import FileReader, SignalFile

_IN_SLOW5 = "is in a SLOW5 file, which cannot be used from a .readdb; run f5py index with --slow5"


class AnyFileReader(FileReader):
    """Reader that selects the fast5 or POD5 reader by each file's content."""

    @staticmethod
    def prepare(path: str) -> None:
        if (reader := _reader_of(path)) is not None:
            reader.prepare(path)

    @staticmethod
    def open_file(path: str) -> SignalFile | str:
        reader = _reader_of(path)
        return _IN_SLOW5 if reader is None else reader.open_file(path)


def _reader_of(path: str) -> type[FileReader] | None:
    """Return the reader of a file, None for SLOW5; the fast5 reader reports files of no format."""
    try:
        kind = file_kind(path) if path else None
    except (OSError, ValueError):
        kind = None
    if kind == "slow5":
        return None
    if kind == "pod5":
        from f5py.io.signals.pod5.reader import Pod5Reader

        return Pod5Reader
    from f5py.io.signals.fast5.reader import Fast5Reader

    return Fast5Reader
