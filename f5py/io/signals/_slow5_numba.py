"""Jitted loops over the records of a SLOW5 file, which call its C library; see `f5py.io.signals._slow5_library`."""

from __future__ import annotations

import numpy as np

from f5py.accelerate import exact_kernel
from f5py.core._addresses_numba import (
    address_of_data,
    call_with_one,
    call_with_three,
    copy_from,
    load_float64,
    load_int64,
    load_uint8,
)
from f5py.core._turns_numba import add_to, next_turn

_N_CALIBRATION = 4
_MOST_NAME = 1 << 16
_NOT_FOUND = -7


@exact_kernel
def read_records(
    turn, reads, names, name_offsets, library, layout, used, scratch, places, codes, n_samples, calibration
):
    """Let the library read the records of `reads`, and copy their samples to free places of `scratch`.

    Parameters
    ----------
    names, name_offsets : uint8, int64
    library : int64, shape (3,)
        Addresses of the function ``slow5_get``, of the open file, and of the function ``slow5_rec_free``.
    layout : int64
        Where in a record its name, calibration, number of samples and samples are.
    used : int64, shape (1,)
        Elements of `scratch` that have been given away; may become more than there are.
    scratch : int16
    places : int64, shape (n,)
        Filled with where in `scratch` each read's samples are; -1 where they did not fit.
    codes : int32, shape (n,)
        The library's answers; 1 for a record of another name.
    n_samples : int64, shape (n,); calibration : float64, shape (n, 4)
    """
    name = np.empty(_MOST_NAME, np.uint8)
    record = np.zeros(1, np.int64)  # the library uses its memory again
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        read = reads[i]
        begin = name_offsets[read]
        size = name_offsets[read + 1] - begin
        codes[read] = _NOT_FOUND
        if size >= _MOST_NAME:
            continue
        odd = False
        for j in range(size):
            name[j] = names[begin + j]
            odd = odd or name[j] == 0
        name[size] = 0
        if odd:
            continue
        codes[read] = call_with_three(library[0], address_of_data(name), address_of_data(record), library[1])
        if codes[read] < 0:
            continue
        codes[read] = 0
        given = load_int64(record[0] + layout[0])
        for j in range(size + 1):
            if load_uint8(given + j) != name[j]:
                codes[read] = 1
                break
        for j in range(_N_CALIBRATION):
            calibration[read, j] = load_float64(record[0] + layout[1] + 8 * j)
        n = load_int64(record[0] + layout[2])
        n_samples[read] = n
        place = add_to(used, n)
        places[read] = -1
        if place + n <= scratch.shape[0]:
            places[read] = place
            if n > 0:
                copy_from(scratch[place : place + n], load_int64(record[0] + layout[3]), 2 * n)
    if record[0] != 0:
        call_with_one(library[2], record[0])


@exact_kernel
def copy_samples(turn, reads, scratch, places, offsets, samples):
    """Copy the samples of `reads` from their places in `scratch` to those in `samples`; none of one without room."""
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        read = reads[i]
        to = offsets[read]
        place = places[read]
        for j in range(offsets[read + 1] - to):  # compiled ten times faster than an assignment to a slice
            samples[to + j] = scratch[place + j]
