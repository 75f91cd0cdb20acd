"""The options of GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from f5py.errors import UsageError
from f5py.options.declaration import Group, Kind, Options, option, options_class, refused

#: When GPUs are used.
GPU_USES = ("auto", "on", "off")


@options_class
class GpuOptions(Options):
    """Use of GPUs, and which; `gpu_use` says what all of it comes to."""

    gpu: str | None = option("--gpu", group=Group.GPU, choices=GPU_USES, default_words="auto", ours=True,
        brief="When to use GPUs: auto, on or off",
        help="When to use GPUs: auto, once it pays off; on, from the beginning; off, never. The result is the "
        "same.")  # fmt: skip
    disable_cuda: bool | None = option("--disable-cuda", kind=Kind.YES_NO, group=Group.GPU, default_words="no",
        help="yes: the same as --gpu off.")  # fmt: skip
    cuda_dev_id: str = option("--cuda-dev-id", group=Group.GPU, metavar="INT[,INT...]|all", default="0",
        help="Numbers of the GPUs; with several, each takes a batch when it becomes free.")  # fmt: skip
    cuda_mem_frac: float | None = option("--cuda-mem-frac", kind=Kind.NUMBER, group=Group.GPU,
        default_words="0.9; Jetson 0.7", help="Share of the free GPU memory to use.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse two contrary words on the use of GPUs, and numbers that are none."""
        yield from super().rules()
        if self.gpu != "off":
            yield from self.not_with(self.given("gpu"), "disable_cuda")
        device_numbers(self.cuda_dev_id)

    @property
    def gpu_use(self) -> str:
        """One of `GPU_USES`."""
        return "off" if self.disable_cuda else self.gpu or "auto"

    def gpu_choices(self) -> dict[str, Any]:
        """Values of these options, for those of another command."""
        names = ("gpu", "disable_cuda", "cuda_dev_id", "cuda_mem_frac")
        return {name: getattr(self, name) for name in names}


@options_class
class CudaOptions(GpuOptions):
    """Division of reads between GPUs and CPU threads."""

    cuda_max_lf: float = option("--cuda-max-lf", group=Group.GPU, default=3.0,
        help="Only reads longer than this times the mean length of the batch can go to the CPU for their "
        "length.")  # fmt: skip
    cuda_avg_epk: float = option("--cuda-avg-epk", group=Group.GPU, default=2.0,
        help="Number of events per base that GPU memory is allocated for.")  # fmt: skip
    cuda_max_epk: float = option("--cuda-max-epk", group=Group.GPU, default=5.0,
        help="Only reads with fewer events per base can go to the GPU.")  # fmt: skip
    cuda_block_size: int | None = option("--cuda-block-size", kind=Kind.INTEGER, group=Group.DEVELOPER,
        default_words="none", free=True,
        help="Accepted, but has no effect: the kernels choose their own block size.")  # fmt: skip
    auto_tune: bool = refused("--auto-tune", kind=Kind.YES_NO,
        reason="the line at the end of a run says which of -K, -B and --cuda-max-lf to change")  # fmt: skip


def device_numbers(text: str | int) -> list[int] | None:
    """Parse the numbers that ``--cuda-dev-id`` names; None for all devices.

    Raises `UsageError` if they are not numbers, or one is named twice.
    """
    if text == "all":
        return None
    words = str(text).split(",")
    if not all(word.isascii() and word.isdigit() for word in words):
        raise UsageError(f"--cuda-dev-id {text}: give numbers of GPUs from 0, such as 0 or 0,1, or all")
    numbers = [int(word) for word in words]
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"--cuda-dev-id {text}: names a GPU twice")
    return numbers
