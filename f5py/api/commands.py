"""The commands that are functions of ``import f5py``."""

from __future__ import annotations

from f5py.api.command import Command
from f5py.options.frequency_commands import FrequencyOptions, MergeOptions
from f5py.options.map_commands import MapOptions
from f5py.options.part_commands import FinishOptions, JoinOptions, PlanOptions, RunPartOptions
from f5py.options.plot_commands import PlotOptions, PlotRegionOptions
from f5py.options.signal_commands import (
    CallOptions,
    CheckOptions,
    CompareOptions,
    EventalignOptions,
    ResquiggleOptions,
    TrainOptions,
)
from f5py.options.table_commands import (
    IndexOptions,
    SimulateOptions,
    SummaryOptions,
    ValidateOptions,
)

MAP = Command("map", "map_reads", MapOptions, "f5py.commands.map")
INDEX = Command("index", "index", IndexOptions, "f5py.commands.index")
CALL = Command("call-methylation", "call_methylation", CallOptions, "f5py.commands.call_methylation")
FREQUENCY = Command("meth-freq", "frequencies", FrequencyOptions, "f5py.commands.meth_freq", "write_frequency_file")
EVENTALIGN = Command("eventalign", "eventalign", EventalignOptions, "f5py.commands.eventalign")
RESQUIGGLE = Command("resquiggle", "resquiggle", ResquiggleOptions, "f5py.commands.resquiggle")
MERGE = Command("freq-merge", "merge_frequencies", MergeOptions, "f5py.commands.meth_freq", "merge_frequency_files")
CHECK = Command("fast5-check", "fast5_check", CheckOptions, "f5py.commands.fast5_check")
SUMMARY = Command("summary", "summary", SummaryOptions, "f5py.commands.summary")
VALIDATE = Command("validate", "validate", ValidateOptions, "f5py.commands.validate")
COMPARE = Command("compare", "compare", CompareOptions, "f5py.commands.compare")
TRAIN = Command("train", "train", TrainOptions, "f5py.commands.train")
PLOT = Command("plot", "plot", PlotOptions, "f5py.commands.plot")
PLOT_REGION = Command("plot-region", "plot_region", PlotRegionOptions, "f5py.commands.plot_region")
SIMULATE = Command("simulate", "simulate", SimulateOptions, "f5py.commands.simulate")
RUN_PART = Command("run-part", "run_part", RunPartOptions, "f5py.commands.parts", "run_part")
PLAN = Command("plan", "plan", PlanOptions, "f5py.commands.plan")
JOIN = Command("merge", "merge", JoinOptions, "f5py.commands.merge")
FINISH = Command("finish", "finish", FinishOptions, "f5py.commands.parts", "finish")
COMMANDS = (
    INDEX,
    MAP,
    CALL,
    FREQUENCY,
    EVENTALIGN,
    RESQUIGGLE,
    MERGE,
    SUMMARY,
    VALIDATE,
    COMPARE,
    TRAIN,
    CHECK,
    PLOT,
    PLOT_REGION,
    SIMULATE,
    RUN_PART,
    PLAN,
    FINISH,
    JOIN,
)
