"""What is compiled ahead is what a run uses."""

from __future__ import annotations

import json
import subprocess
import sys

from ..made_data import ReadSet

#: Runs the commands, then compiles ahead; every kernel must have been compiled for one kind of arguments only.
PROGRAM = """
import json, sys
from importlib import import_module
from f5py.cli import main
from f5py.commands.compile_ahead import PARTS, compile_parts
for command in json.loads(sys.argv[1]):
    try:
        main(command)
    except SystemExit as end:
        assert end.code == 0, command
compile_parts(list(PARTS))
print(json.dumps({name: len(getattr(import_module(module), kernel).signatures)
                  for name, ((module, kernel), _) in PARTS.items()}))
"""


def test_the_arguments_have_the_types_of_a_run(made: ReadSet, tmp_path):
    out = ["-o", str(tmp_path / "out")]
    commands = [
        ["call-methylation", *made.options(), *out],
        ["call-methylation", *made.options(), *out, "--per-site"],
        ["eventalign", *made.options(), *out],
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)], capture_output=True, text=True, check=True, timeout=300
    )
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts == dict.fromkeys(counts, 1)
    assert set(counts) == {"calls", "site calls", "calls table", "alignment", "event rows", "event table"}
