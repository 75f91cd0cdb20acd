"""Options that need others or exclude them: what rules say is refused from everywhere, in one form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from f5py.errors import UsageError
from f5py.mapping.options import MapOptions
from f5py.options import Kind, Options, declarations
from f5py.options.declaration import flag, option, options_class
from f5py.options.frequency_commands import FrequencyOptions
from f5py.options.signal_commands import CallOptions, EventalignOptions, TrainOptions
from f5py.options.table_commands import SimulateOptions

CALLED = {"bam": "b", "genome": "g"}


@options_class
class Tea(Options):
    """Options that stand for those of a command."""

    milk: bool = flag("--milk", help="Milk.")
    lemon: bool = flag("--lemon", help="Lemon.")
    kind: str = option("--kind", choices=("green", "black", "red"), default="green", help="Kind.")
    sugar: int | None = option("-s", "--sugar", kind=Kind.INTEGER, help="Lumps.")
    stirred: bool | None = option("--stirred", kind=Kind.YES_NO, help="Stirred.")

    def rules(self) -> Iterator[str]:
        """Refuse what does not taste."""
        yield from super().rules()
        yield from self.not_with(self.given("milk", "absent", "kind"), "lemon", "absent")
        if not self.milk and self.kind != "black":
            yield from self.only_with("--milk or --kind black", "sugar")
        if self.sugar is None:
            yield from self.only_with("--sugar", "stirred", advice="it goes round in water")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"lemon": True, "milk": True}, "--lemon and --milk exclude each other; choose one"),
        ({"lemon": True, "kind": "red"}, "--lemon and --kind red exclude each other; choose one"),
        (
            {"lemon": True, "kind": "red", "milk": True},
            "--lemon and --milk and --kind red exclude each other; choose one",
        ),
        ({"sugar": 2}, "--sugar needs --milk or --kind black; add one of them, or leave --sugar out"),
        ({"sugar": 0}, "--sugar needs --milk or --kind black; add one of them, or leave --sugar out"),
        ({"stirred": True}, "--stirred yes needs --sugar; it goes round in water"),
    ],
)
def test_what_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as refusal:
        Tea(**given)
    assert str(refusal.value) == says


@pytest.mark.parametrize(
    "given",
    [
        {"lemon": True},
        {"milk": True, "kind": "red"},
        {"sugar": 1, "kind": "black"},
        {"sugar": 1, "milk": True, "stirred": True},
        {"stirred": False},
    ],
)
def test_what_goes_together(given: dict[str, Any]) -> None:
    Tea(**given)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (CallOptions, CALLED | {"prior": 0.3}),
        (CallOptions, CALLED | {"output": "x.bam", "output_format": "tsv", "replace_tags": True}),
        (CallOptions, CALLED | {"rescale": True}),
        (CallOptions, CALLED | {"accurate": True, "noise": "independent"}),
        (CallOptions, CALLED | {"print_events": True, "resume": True}),
        (CallOptions, CALLED | {"keep_bam": "x.bam"}),
        (CallOptions, {"genome": "g", "watch": "w", "window": ("chr1",)}),
        (EventalignOptions, CALLED | {"m6anet_json": "m", "output": "x.tsv"}),
        (MapOptions, {"reference": "r", "reads": ("a",), "preset": "darwin", "hpc": True}),
        (MapOptions, {"reference": "r", "write_index": "i", "seeds": "mem", "hpc": True}),
        (SimulateOptions, {"output": "o", "complete": 0.5}),
        (TrainOptions, CALLED | {"truth": "t", "sample": "s"}),
    ],
)
def test_contradictions_of_commands(kind: Any, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        kind(**given)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (CallOptions, CALLED | {"prior": 0.3, "output": "x.bam"}),
        (CallOptions, CALLED | {"prior": 0.3, "modbam_output_name": "x"}),
        (CallOptions, CALLED | {"call_threshold": 2.0, "output": "x.bedgraph"}),
        (EventalignOptions, CALLED | {"sam_out_version": 1, "output": "x.bam"}),
        (FrequencyOptions, {"tables": ("a",), "combine_strands": True, "output": "x.bed.gz"}),
    ],
)
def test_names_of_outputs_stand_for_options(kind: Any, given: dict[str, Any]) -> None:
    kind(**given)


def test_what_a_resumed_run_may_change() -> None:
    free = {name for name, one in declarations(CallOptions).items() if one.is_free}
    assert free == {
        "threads", "batchsize", "max_bases", "iop", "profile", "verbose", "profile_cpu", "progress", "strict", "gpu",
        "disable_cuda", "cuda_dev_id", "cuda_max_lf", "cuda_avg_epk", "cuda_max_epk", "cuda_mem_frac",
        "cuda_block_size", "plan", "partitions", "resume", "engine", "scheduler", "workers",
        "watch_until_idle", "watch_interval",
    }  # fmt: skip


def test_what_may_be_a_url() -> None:
    for kind in (CallOptions, EventalignOptions, TrainOptions):
        named = {name for name, one in declarations(kind).items() if one.url}
        assert named == {"bam", "genome", "reads", "slow5", "pod5", "fast5"}
