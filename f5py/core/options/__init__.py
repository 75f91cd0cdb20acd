"""The options of all commands: names, meanings and defaults of the command line, as dataclasses."""

from f5py.core.options.declaration import Group, Kind, Option, Options, declarations
from f5py.core.options.part_commands import (
    FinishOptions,
    JoinOptions,
    PartOptions,
    PlanOptions,
    RunPartOptions,
    WatchOptions,
)
from f5py.core.options.shared import (
    CALL_THRESHOLD,
    METHYLATION,
    METHYLATIONS,
    AlignmentOptions,
    MappedReadsOptions,
)
from f5py.core.options.signal_commands import (
    CallOptions,
    CheckOptions,
    CompareOptions,
    EventalignOptions,
    PlotOptions,
    PlotRegionOptions,
    ResquiggleOptions,
    TrainOptions,
)
from f5py.core.options.table_commands import (
    DemoOptions,
    EvaluationOptions,
    FrequencyOptions,
    IndexOptions,
    MergeOptions,
    SimulateOptions,
    SummaryOptions,
    ValidateOptions,
)

__all__ = [
    "CALL_THRESHOLD",
    "METHYLATION",
    "METHYLATIONS",
    "AlignmentOptions",
    "CallOptions",
    "CheckOptions",
    "CompareOptions",
    "DemoOptions",
    "EvaluationOptions",
    "EventalignOptions",
    "FinishOptions",
    "FrequencyOptions",
    "Group",
    "IndexOptions",
    "JoinOptions",
    "Kind",
    "MappedReadsOptions",
    "MergeOptions",
    "Option",
    "Options",
    "PartOptions",
    "PlanOptions",
    "PlotOptions",
    "PlotRegionOptions",
    "ResquiggleOptions",
    "RunPartOptions",
    "SimulateOptions",
    "SummaryOptions",
    "TrainOptions",
    "ValidateOptions",
    "WatchOptions",
    "declarations",
]
