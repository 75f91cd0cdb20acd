"""Main program of a reader process. Imports no more than reading needs, because every process pays for it."""

from __future__ import annotations

import mmap
import os
from importlib import import_module
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray

from f5py.errors import F5pyError, SignalError
from f5py.io.signals.helper_process import send

#: Shared memory per process: two slots, so that one is filled while the other is emptied.
N_SLOTS = 2
SLOT_SAMPLES = 1 << 20
WINDOW_BYTES = N_SLOTS * SLOT_SAMPLES * 2


def map_window(descriptor: int) -> NDArray[np.int16]:
    """Map the shared memory of a file descriptor: int16, shape (N_SLOTS, SLOT_SAMPLES)."""
    shared = mmap.mmap(descriptor, WINDOW_BYTES)
    return np.frombuffer(shared, np.int16).reshape(N_SLOTS, SLOT_SAMPLES)


def serve(connection: Connection, memory: str, module: str, reader_class: str) -> None:
    """Read what the parent asks for until it hangs up, with a `FileReader` of that module and name.

    A request is ``(names, paths)``, or ``(name, path)``, which is answered with what is known of a read's run. To the
    first kind the answer is either an exception to be raised by the parent or
    ``(offsets, calibration, problems)``; after the latter, the samples come in pieces of one slot. Each full
    slot is announced by an empty message, and may be filled again once the parent has answered it.
    """
    window = map_window(int(memory))
    os.close(int(memory))
    reader = getattr(import_module(module), reader_class)()
    try:
        while True:
            names, paths = connection.recv()
            try:
                answer = reader.run_info(names, paths) if isinstance(names, str) else reader.read(names, paths)
            except F5pyError as error:
                send(connection, error)
                continue
            except OSError as error:  # of the machine
                where = f"{error.filename}: " if error.filename else ""
                send(connection, SignalError(f"{where}cannot be read ({error.strerror or error})"))
                continue
            except Exception as error:
                cause = " ".join(f"{type(error).__name__}: {error}".split())
                send(connection, SignalError(f"a signal reader process failed: {cause}"))
                continue
            if isinstance(names, str):
                send(connection, answer)
                continue
            block = answer
            send(connection, (block.offsets, block.calibration(), block.problems))
            _send_samples(connection, window, block.samples)
    except (EOFError, OSError):
        pass  # the parent has hung up or is gone
    finally:
        reader.close()


def _send_samples(connection: Connection, window: NDArray[np.int16], samples: NDArray[np.int16]) -> None:
    unanswered = 0
    for piece, start in enumerate(range(0, samples.size, SLOT_SAMPLES)):
        if unanswered == N_SLOTS:
            connection.recv_bytes()
            unanswered -= 1
        part = samples[start : start + SLOT_SAMPLES]
        window[piece % N_SLOTS, : part.size] = part
        connection.send_bytes(b"")
        unanswered += 1
    for _ in range(unanswered):
        connection.recv_bytes()
