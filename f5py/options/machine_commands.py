"""Options of commands about the machine."""

from __future__ import annotations

from collections.abc import Iterator

from f5py.errors import UsageError
from f5py.options.declaration import Options, option, options_class
from f5py.options.gpu import device_numbers


@options_class
class GpuCheckOptions(Options):
    """Options of ``f5py gpu-check``."""

    cuda_dev_id: str = option("--cuda-dev-id", metavar="INT[,INT...]|all", default="all",
        help="Numbers of the GPUs to check.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse numbers that are none."""
        yield from super().rules()
        device_numbers(self.cuda_dev_id)


#: The oldest compute capability that the kernels are written for, as one number.
_OLDEST = 72


@options_class
class CompileOptions(Options):
    """Options of ``f5py compile``."""

    cuda_arch: str | None = option("--cuda-arch", metavar="INT[,INT...]",
        help="Compute capabilities of GPUs to compile for, such as 87 for 8.7.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse numbers that are none."""
        yield from super().rules()
        self.capabilities()

    def capabilities(self) -> list[str]:
        """List the compute capabilities, each as one number such as ``"87"``.

        Raises `UsageError` if they are not numbers, or one is too old.
        """
        words = self.cuda_arch.split(",") if self.cuda_arch else []
        if not all(word.isascii() and word.isdigit() and int(word) >= _OLDEST for word in words):
            raise UsageError(
                f"--cuda-arch {self.cuda_arch}: give compute capabilities from {_OLDEST}, such as 87 or 87,90"
            )
        return words
