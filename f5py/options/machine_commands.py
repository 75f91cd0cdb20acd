"""Options of commands about the machine."""

from __future__ import annotations

from f5py.options.declaration import Options, option, options_class
from f5py.options.gpu import device_numbers


@options_class
class GpuCheckOptions(Options):
    """Options of ``f5py gpu-check``."""

    cuda_dev_id: str = option(
        "--cuda-dev-id", metavar="INT[,INT...]|all", default="all", help="Numbers of the GPUs to check."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        device_numbers(self.cuda_dev_id)
