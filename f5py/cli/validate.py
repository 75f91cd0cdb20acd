"""``f5py validate``: calls or frequencies against what is known of the sites."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.table_commands import ValidateOptions


@options.command(
    "validate",
    ValidateOptions,
    examples=(
        "f5py validate calls.tsv truth.bed.gz",
        "f5py validate freq.tsv wgbs.bed --min-coverage 10 --report validation.html",
        "f5py validate --methylated sssi.bam --unmethylated wga.bam",
    ),
)
def command(**given: Any) -> None:
    """Compare calls or frequencies with what is known about the sites.

    CALLS is a table of calls, BAM with MM and ML tags, bedMethyl or a table of meth-freq. TRUTH is bedMethyl, a table
    of meth-freq, or a simulation's truth.tsv or truth_reads.tsv. Instead of both, calls of controls can be given.
    For calls, prints the area under the ROC curve, precision and recall by threshold, and the reliability of the
    probabilities; for sites, the correlation of frequencies. Calls need pyarrow: pip install pyarrow.
    """
    from f5py.api.table_functions import validate

    validate(**given)
