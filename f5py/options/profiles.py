"""Named sets of options for kinds of machines, and profile files."""

import math
from dataclasses import dataclass
from pathlib import Path

from f5py.errors import InputFileError


@dataclass(frozen=True)
class Profile:
    """Option values of a kind of machine; None leaves an option alone."""

    cuda_max_lf: float | None
    cuda_avg_epk: float | None
    cuda_max_epk: float | None
    batchsize: int | None
    max_bases: int | None
    threads: int | None
    iop: int | None = None
    ultra_thresh: int | None = 100_000
    disable_cuda: bool | None = None

    def values(self) -> dict[str, float | int | bool]:
        """Return the options that the profile sets, by parameter name."""
        return {name: value for name, value in vars(self).items() if value is not None}


PROFILES = {
    "jetson-orin-nano": Profile(3, 2, 6.25, 512, 2_350_000, 6, 1),
    "jetson-orin-nx": Profile(3, 2, 6.25, 1024, 4_700_000, 8, 2),
    "jetson-orin": Profile(3, 2, 6.25, 2048, 9_400_000, 12, 2),
    "jetson-xavier": Profile(3, 2, 6.25, 1024, 4_700_000, 8, 2),
    "laptop-low": Profile(5, 2, 5, 256, 1_500_000, 4, 1),
    "laptop-mid": Profile(5, 2, 5, 350, 2_000_000, 8, 2),
    "laptop-high": Profile(5, 2, 5, 512, 2_500_000, 12, 2),
    "desktop-low": Profile(5, 2, 5, 512, 5_000_000, 8, 2),
    "desktop-mid": Profile(5, 2, 5, 768, 6_250_000, 12, 4),
    "desktop-high": Profile(5, 2, 5, 1024, 7_500_000, 16, 6),
    "hpc-low": Profile(5, 2, 5, 1024, 10_000_000, 32, 64),
    "hpc-mid": Profile(5, 2, 5, 2048, 20_000_000, 48, 64),
    "hpc-high": Profile(5, 2, 5, 2560, 25_000_000, 64, 64),
    "hpc-gpu": Profile(5, 2, 5, 1024, 10_000_000, 32, 32),
    "hpc-cpu": Profile(5, 2, 5, 4096, 50_000_000, 32, 32, disable_cuda=True),
    "nci-gadi": Profile(5, 2, 5, 2048, 20_000_000, 12, 64),
}
#: f5c's profiles of boards whose GPUs are too old, and their compute capabilities.
REFUSED = {"jetson-nano": "5.3", "jetson-tx2": "6.2"}
for _short in ("laptop", "desktop", "hpc"):
    PROFILES[_short] = PROFILES[f"{_short}-mid"]


def load_profile(name: str) -> Profile:
    """Load the profile of that name or in that file.

    A file holds seven numbers separated by white space: max-lf, avg-epk, max-epk, K, B, t and ultra-thresh; -1 leaves
    an option alone.
    """
    if name in PROFILES:
        return PROFILES[name]
    if name in REFUSED:
        raise InputFileError(
            f"-x {name}: the GPU of that board has compute capability {REFUSED[name]}, and 7.2 is needed; without -x "
            "the CPU threads do the work"
        )
    try:
        words = Path(name).read_text().split()
    except (OSError, UnicodeDecodeError):
        names = ", ".join(sorted(PROFILES))
        raise InputFileError(f"-x {name}: neither a readable profile file nor one of the profiles {names}") from None
    try:
        max_lf, avg_epk, max_epk, *counts = (float(word) for word in words[:7])
        batchsize, max_bases, threads, ultra_thresh = (int(count) for count in counts)
    except (ValueError, OverflowError):
        raise InputFileError(
            f"{name}: a profile file has seven numbers: max-lf avg-epk max-epk K B t ultra-thresh"
        ) from None
    numbers = (max_lf, avg_epk, max_epk, batchsize, max_bases, threads, ultra_thresh)
    if not all(number == -1 or 0 < number < math.inf for number in numbers):
        raise InputFileError(f"{name}: the numbers of a profile file are positive, or -1 to leave an option alone")

    def given(number):
        return None if number == -1 else number

    return Profile(
        given(max_lf), given(avg_epk), given(max_epk), given(batchsize), given(max_bases), given(threads),
        ultra_thresh=given(ultra_thresh),
    )  # fmt: skip
