"""Options, signals and reads that disagree on the chemistry, and models that do not fit."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from f5py.pore_model import builtin

from ...made_data import N_READS, ReadSet
from .commands import SignalCommand
from .conftest import Fails, Stops, Succeeds

_UNFIT = "50 of the first 50 reads of 300 bases or more do not fit the pore model"


@pytest.mark.parametrize("kind", ["slow5", "pod5"])
def test_options_that_contradict_the_signals(
    command: SignalCommand, made: ReadSet, tmp_path: Path, fails: Fails, kind: str
) -> None:
    """The same from the header of a SLOW5 file and from the run of a POD5 file."""
    names = made.names[:3]
    cases: list[tuple[list[str], dict[str, str], str]] = [
        (["--rna"], {"experiment_type": "genomic_dna"}, "--rna, but the signals are DNA (experiment_type genomic_dna)"),
        (
            ["--rna"],
            {"experiment_type": "genomic_dna", "sequencing_kit": "sqk-lsk114"},
            "--rna, but the signals are DNA (experiment_type genomic_dna, sequencing_kit sqk-lsk114)",
        ),
        (["--pore", "r10"], {"sequencing_kit": "sqk-lsk109"}, "--pore r10, but the signals are of r9"),
        (["--pore", "r9"], {"sequencing_kit": "sqk-lsk114"}, "--pore r9, but the signals are of r10"),
        (["--pore", "r9"], {"sequencing_kit": "sqk-rna004"}, "--pore r9, but the signals are of rna004"),
        (["--pore", "rna004"], {"experiment_type": "genomic_dna"}, "--pore rna004, but the signals are DNA"),
        (["--pore", "r10"], {"sequencing_kit": "sqk-rna002"}, "--pore r10, but the signals are RNA"),
        (["--pore", "r10", "--rna"], {}, "--pore r10 and --rna exclude each other"),
        ([], {"sequencing_kit": "sqk-lsk114", "experiment_type": "rna"}, "RNA and R10 at the same time"),
    ]
    if not command.has_rna:
        cases = [case for case in cases if "--rna" not in case[0]]
    for number, (options, fields, words) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        if kind == "slow5":
            reads = made.with_slow5(folder, names, **fields)
        else:
            tags = {key: value for key, value in fields.items() if key != "sequencing_kit"}
            kit = fields.get("sequencing_kit", "")
            reads = made.with_pod5(folder, names, sequencing_kit=kit, context_tags=tags)
        assert words in fails(reads, *options)


@pytest.mark.parametrize("labelled", [True, False])
def test_reads_with_the_letters_of_rna_need_the_option(
    command: SignalCommand, made: ReadSet, unlabelled: ReadSet, tmp_path: Path, stops: Stops, labelled: bool
) -> None:
    reads = made if labelled else unlabelled
    text = "".join(f">{name}\n{made.sequence(name).replace('T', 'U')}\n" for name in made.names)
    line, output = stops(reads.with_text_of_reads(tmp_path / "u.fasta", text))
    assert "the reads have the letter U, so they are direct RNA" in line
    assert ("--rna" if command.has_rna else "eventalign") in line
    assert output.count(b"\n") <= 1


def test_reads_that_do_not_fit(
    command: SignalCommand, made: ReadSet, unlabelled: ReadSet, tmp_path: Path, stops: Stops
) -> None:
    """Which only the data can tell: of the first of many reads, or of all if these are few."""
    if not command.has_rna:
        pytest.skip("has no models of RNA")
    line, output = stops(command.many(unlabelled, tmp_path, 4), "--rna")
    assert f"{_UNFIT} r9.4_70bps_rna." in line
    assert "--rna)" in line
    assert output.count(b"\n") <= 1
    line, _ = stops(unlabelled, "--rna")
    assert f"all {N_READS} reads failed" in line


# Models


def model_text(k: int, alphabet: str = "ACGT") -> str:
    kmers = ("".join(kmer) for kmer in product(alphabet, repeat=k))
    return f"#k\t{k}\n" + "".join(f"{kmer}\t90.0\t2.0\n" for kmer in kmers)


@pytest.mark.parametrize("k", [2, 5, 7])
def test_a_model_of_another_k(
    command: SignalCommand, made: ReadSet, tmp_path: Path, fails: Fails, stops: Stops, k: int
) -> None:
    """It is a model of something else, as the reads show; rows are never made with it."""
    path = tmp_path / "model.txt"
    path.write_text(model_text(k))
    if command.name == "call-methylation":  # where the two models must be of one k
        assert f"{path} (k = {k}) and r9.4_450bps.cpg.6mer (k = 6) do not fit together" in fails(
            made, "--kmer-model", path
        )
        return
    line, output = stops(command.many(made, tmp_path, 4), "--kmer-model", path)
    assert "of the first 50 reads of 300 bases or more do not fit the pore model" in line
    assert "model.txt" in line
    assert "give a fitting --kmer-model" in line
    assert output.count(b"\n") <= 1


def test_the_builtin_models_from_files_change_nothing(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds
) -> None:
    models = {"--kmer-model": "r9.4_450bps.nucleotide.6mer"}
    if command.name == "call-methylation":
        models["--meth-model"] = "r9.4_450bps.cpg.6mer"
    options: list[object] = []
    for option, name in models.items():
        model = builtin(name)
        kmers = ("".join(kmer) for kmer in product(model.alphabet, repeat=6))
        rows = zip(kmers, model.level_mean, model.level_stdv, strict=True)
        (tmp_path / name).write_text("".join(f"{kmer}\t{mean:.9g}\t{stdv:.9g}\n" for kmer, mean, stdv in rows))
        options += [option, tmp_path / name]
    assert succeeds(made, *options)[0] == table
