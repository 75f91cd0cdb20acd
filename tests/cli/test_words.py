"""Command lines are read as getopt reads them."""

from __future__ import annotations

import pytest

from f5py.cli.options import expand
from f5py.errors import UsageError
from f5py.options import declarations
from f5py.options.signal_commands import CallOptions, EventalignOptions
from f5py.options.table_commands import IndexOptions

CALL = list(declarations(CallOptions).values())
EVENTALIGN = list(declarations(EventalignOptions).values())
INDEX = list(declarations(IndexOptions).values())


@pytest.mark.parametrize(
    ("options", "words", "whole"),
    [
        (CALL, "--sec yes", "--secondary yes"),
        (CALL, "--sec=yes --g ref.fa", "--secondary=yes --genome ref.fa"),
        (CALL, "--min-recalib 10", "--min-recalib-events 10"),
        (CALL, "--min-map 3", "--min-mapq 3"),
        (CALL, "--min-mapping 3", "--min-mapping-quality 3"),
        (EVENTALIGN, "--sig --print-read", "--signal-index --print-read-names"),
        (EVENTALIGN, "--sam", "--sam"),
        (EVENTALIGN, "--samp", "--samples"),
        (EVENTALIGN, "--m6a", "--m6anet"),
        (INDEX, "--sequencing-summary s.txt", "--sequencing-summary s.txt"),
        # what f5c knows is not made ambiguous by what it does not know
        (CALL, "--po r9", "--pore r9"),
        (CALL, "--output o", "--output o"),
        (CALL, "--out o", "--output o"),
        # nor by what samtools knows, which is understood whole
        (CALL, "--ge g.fa --wi chr1 --thr 3", "--genome g.fa --window chr1 --threads 3"),
        (CALL, "--reference g.fa --region chr1 -@ 3", "--reference g.fa --region chr1 -@ 3"),
        (CALL, "--quiet --log-file x.log", "--quiet --log-file x.log"),
        # a value is left alone, whatever it looks like
        (CALL, "-o --sec -t8 -K 16 --debug-break -1", "-o --sec -t8 -K 16 --debug-break -1"),
        (CALL, "--output --sec", "--output --sec"),
        (CALL, "-- --sec", "-- --sec"),
        # the number of -v may be missing
        (CALL, "-v -r a.fq", "-v 1 -r a.fq"),
        (CALL, "-v 2 -r a.fq", "-v 2 -r a.fq"),
        (CALL, "-v2 -r a.fq", "-v2 -r a.fq"),
        (CALL, "--verb", "--verbose 1"),
        (INDEX, "--verbose -d fast5 reads.fastq", "--verbose 1 -d fast5 reads.fastq"),
        (INDEX, "--verbose reads.fastq", "--verbose 1 reads.fastq"),
        (EVENTALIGN, "-ca", "-ca"),
        (EVENTALIGN, "-cv", "-cv 1"),
        # what is not known is for the parser to refuse
        (CALL, "--nonsense -y --", "--nonsense -y --"),
        (CALL, "-", "-"),
    ],
)
def test_words(options, words: str, whole: str):
    assert expand(words.split(), options) == whole.split()


@pytest.mark.parametrize("word", ["--print", "--cuda-m", "--min", "--s", "--"[:2] + "cuda"])
def test_ambiguous_abbreviations_are_refused(word: str):
    with pytest.raises(UsageError, match=rf"option {word} is ambiguous: it could be --"):
        expand([word], EVENTALIGN)
