"""Foundations of a run's results: chemistry, models and options as they hold."""

from __future__ import annotations

import json

import pytest

from f5py.compute.alignment import AlignmentStage
from f5py.compute.chemistry import chemistry_of
from f5py.compute.methylation import MethylationStage
from f5py.compute.provenance import _ONLY_WITH, _WORDS_ARE_VALUES, effective, in_words, metadata_in_common
from f5py.options import declarations
from f5py.options.declaration import Group, Kind
from f5py.options.signal_commands import CallOptions, EventalignOptions, ResquiggleOptions

INPUTS = {"bam": "b", "genome": "g"}


@pytest.mark.parametrize(
    ("pore", "rna", "run_info", "known_from"),
    [
        (None, False, {}, "assumed, as neither the options nor the signals tell"),
        (None, False, {"flow_cell_product_code": "unknown"}, "assumed, as neither the options nor the signals tell"),
        ("r10", False, {}, "--pore"),
        (None, True, {}, "--rna"),
        ("r9", True, {"sequencing_kit": "sqk-rna002"}, "--pore and --rna and sequencing_kit sqk-rna002"),
        (None, False, {"sequencing_kit": "SQK-LSK114"}, "sequencing_kit SQK-LSK114"),
        (None, False, {"experiment_type": "rna"}, "experiment_type rna"),
        ("r10", False, {"sample_frequency": "5000"}, "--pore, 5 kHz"),
        ("r10", False, {"sample_frequency": "4000"}, "--pore"),
        ("r9", False, {"sample_frequency": "5000"}, "--pore"),
        (
            None,
            False,
            {"basecall_model": "dna_r10.4.1_e8.2_400bps_5khz_sup"},
            "basecall_model dna_r10.4.1_e8.2_400bps_5khz_sup, 5 kHz",
        ),
    ],
)
def test_it_is_told_how_the_chemistry_is_known(pore, rna, run_info, known_from):
    assert chemistry_of(pore, rna, run_info, own_model=False).known_from == known_from


def test_facts_of_calls():
    options = CallOptions(**INPUTS, methylation="cpg,gpc", threads=1, accurate=True, window=("chr1",), modbam="x.bam")
    caller = MethylationStage(options, chemistry_of(None, False, {"sequencing_kit": "sqk-lsk109"}, own_model=False))
    caller.close()
    facts = caller.facts
    assert facts.models == {
        "pore model": "r9.4_450bps.nucleotide.6mer",
        "cpg model": "r9.4_450bps.cpg.6mer",
        "gpc model": "r9.4_450bps.gpc.6mer",
    }
    assert facts.options["noise"] == "correlated"
    assert facts.options["window_mode"] == "start"
    assert facts.options["prior"] == 0.5
    assert facts.options["rescale"] is False
    assert facts.line.startswith(
        "chemistry R9.4 DNA (sequencing_kit sqk-lsk109); pore model r9.4_450bps.nucleotide.6mer; "
    )
    assert "--methylation cpg,gpc" in facts.line
    assert "--secondary no" in facts.line
    assert facts.line.startswith(f"{facts.short_line}; --")
    assert "--" not in facts.short_line
    about = json.loads(facts.metadata["f5py"])
    assert about["pore"] == "r9"
    assert about["options"] == facts.options


def test_nothing_depends_on_threads_batches_gpus_and_names_of_outputs():
    many = {"threads": 3, "batchsize": 7, "max_bases": 99, "gpu": "off", "iop": 2, "output": "x", "report": ("y",)}
    for kind in (CallOptions, EventalignOptions):
        assert effective(kind(**INPUTS)) == effective(kind(**INPUTS, **many))


def test_flags_and_what_they_need():
    plain = effective(EventalignOptions(**INPUTS))
    assert "scale_events" not in plain
    assert "sam_out_version" not in plain
    options = EventalignOptions(**INPUTS, sam=True, scale_events=True, min_mean_emission=-4.5)
    assert effective(options)["sam_out_version"] == 2
    assert {"--scale-events", "--sam-out-version 2", "--min-mean-emission -4.5"} <= set(in_words(options).split(", "))


def test_resquiggle_has_facts():
    stage = AlignmentStage(ResquiggleOptions(reads="r", signals=("s",)), chemistry_of("rna004", False, {}, False))
    stage.close()
    assert "chemistry RNA004 (--pore); pore model rna004_130bps.nucleotide.9mer; " in stage.facts.line


def test_names_of_options_are_those_that_are_declared():
    declared = {**declarations(CallOptions), **declarations(EventalignOptions)}
    assert declared.keys() >= {*_ONLY_WITH, *(name for needs in _ONLY_WITH.values() for name in needs)}
    for name in _WORDS_ARE_VALUES:
        assert declared[name].default is None
        assert declared[name].default_words


def test_all_options_of_models_and_limits_are_told():
    shown = effective(CallOptions(**INPUTS, kmer_model="k"))
    told_otherwise = {"pore", "kmer_model", "meth_model", "motif", "accurate", "per_site"}
    for name, option in declarations(CallOptions).items():
        if option.group in (Group.MODEL, Group.LIMITS) and option.kind is not Kind.FLAG and name not in told_otherwise:
            assert name in shown


def about(**options):
    return json.dumps({"version": "1", "options": options}).encode()


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([about(min_mapq=20)], about(min_mapq=20)),
        ([about(window="a"), about(window="a")], about(window="a")),
        ([about(window="a", min_mapq=1), about(window="b", window_mode="clip", min_mapq=1)], about(min_mapq=1)),
        ([about(min_mapq=20), about(min_mapq=0)], None),
        ([about(), None], None),
        ([b"{", b"["], None),
        ([None], None),
    ],
)
def test_merged_tables_say_what_they_agree_in(texts, expected):
    assert metadata_in_common(texts) == ({} if expected is None else {"f5py": expected.decode()})
