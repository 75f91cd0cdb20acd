"""The catalogue of commands: the command line, the functions of ``import f5py`` and their stub are made from it."""

from f5py.api.catalogue.other_commands import COMPILE, DEMO, FINISH, GPU_CHECK, JOIN, PLAN, RUN_PART, SIMULATE
from f5py.api.catalogue.signal_commands import CALL, CHECK, EVENTALIGN, INDEX, MAP, PLOT, RESQUIGGLE, TRAIN
from f5py.api.catalogue.table_commands import COMPARE, FREQUENCY, MERGE, PLOT_REGION, SUMMARY, VALIDATE

#: How the help shows them.
GROUPS = {
    "Methylation": (CALL, FREQUENCY, MERGE, SUMMARY, VALIDATE, PLOT_REGION),
    "Events": (EVENTALIGN, RESQUIGGLE, COMPARE, PLOT),
    "Before": (INDEX, CHECK, MAP),
    "In parts": (PLAN, RUN_PART, FINISH, JOIN),
    "Models and simulated reads": (TRAIN, SIMULATE, DEMO),
    "This machine": (GPU_CHECK, COMPILE),
}
_ALL = (
    INDEX, MAP, CALL, FREQUENCY, EVENTALIGN, RESQUIGGLE, MERGE, SUMMARY, VALIDATE, COMPARE, TRAIN, CHECK, PLOT,
    PLOT_REGION, SIMULATE, RUN_PART, PLAN, FINISH, JOIN, DEMO, GPU_CHECK, COMPILE,
)  # fmt: skip
COMMANDS = {command.name: command for command in _ALL}
