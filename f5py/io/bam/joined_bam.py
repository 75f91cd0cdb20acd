"""Concatenation of BAM files that copies blocks unchanged where possible."""

from __future__ import annotations

from contextlib import closing
from typing import BinaryIO

import numpy as np

from f5py.errors import InputFileError
from f5py.io.bam.bam_blocks import READ_BYTES, DamagedBlocksError, block_portions, block_size, first_text, text_sizes
from f5py.io.bam.bam_output import RecordOutput
from f5py.io.bam.bam_records import header_end, record_chunks
from f5py.io.bam.record_layout import FIXED_SIZE
from f5py.io.bytes.bgzf_blocks import MAX_BLOCK


class JoinedBam(RecordOutput):
    """A `RecordOutput` that also appends whole files with the same contigs.

    The bytes equal those of the same records written directly, if the files come from `RecordOutput`.
    """

    def append(self, file: BinaryIO) -> None:
        """Append the records of a BAM file.

        Raises `InputFileError` if it cannot be read or is damaged, `OutputFileError` as `RecordOutput`.
        """
        try:
            if self.is_bam:
                self._append_blocks(file)
                return
            with closing(record_chunks(file, self.n_contigs)) as chunks:
                for data, starts, n in chunks:
                    self.write(data[: starts[n]])
        except DamagedBlocksError as damage:
            raise InputFileError(f"{file.name}: {damage}; make the file again") from None
        except OSError as problem:
            if problem.filename not in (None, file.name):
                raise
            raise InputFileError(f"{file.name}: cannot be read: {problem.strerror or problem}") from None

    def _append_blocks(self, file: BinaryIO) -> None:
        place = self._append_until_blocks_meet(file)
        if place is None:
            return
        # from here on all blocks are equal but the last, which may grow
        file.seek(place)
        held = b""
        for data, blocks, problem in block_portions(file, READ_BYTES):
            if problem is not None:
                raise problem
            ends = blocks[text_sizes(data, blocks) > 0, 2].tolist()
            if not ends:  # only the end block
                continue
            first, begin = [0, *ends][-2:]
            self.put_blocks([held, data[:first]])
            held = data[first:begin]
        if held:
            self.set_pending(first_text(held))

    def _append_until_blocks_meet(self, file: BinaryIO) -> int | None:
        """Append records until blocks of the file and the output coincide; return the block's offset, or None."""
        from f5py.io.bam._bam_numba import list_records

        text = bytearray()  # of the header, then of an incomplete record
        n_header: int | None = None
        n_appended = 0  # bytes of records
        n_read = 0
        begins: dict[int, int] = {}  # file offsets of blocks by the bytes of records before them
        place = 0
        while True:
            file.seek(place)
            data = file.read(MAX_BLOCK)
            if not data:
                break
            size = block_size(data)
            if n_header is not None:
                begins[n_read - n_header] = place
                if self.n_pending == 0 and not text:
                    return place
            piece = first_text(data)
            n_read += len(piece)
            place += size
            text += piece
            if n_header is None:
                n_header = header_end(text)
                if n_header is None:
                    continue
                del text[:n_header]
            records = np.frombuffer(bytes(text), np.uint8)
            starts = np.empty(len(records) // FIXED_SIZE + 2, np.int64)
            n, damaged = list_records(records, self.n_contigs, starts)
            if damaged:
                raise DamagedBlocksError("a record is damaged")
            self.write(records[: starts[n]])
            n_appended += int(starts[n])
            del text[: starts[n]]
            met = begins.get(n_appended - self.n_pending)
            if met is not None:
                self.set_pending(b"")
                return met
        if text or n_header is None:
            raise DamagedBlocksError("the file is truncated")
        return None
