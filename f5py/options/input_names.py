"""Files that belong to an input, and have its name and an ending."""

#: Endings of the index of basecalled reads: the sequences as BGZF, their two indices, and the signal file of each read.
SEQUENCE_SUFFIX = ".index"
FAI_SUFFIX = ".index.fai"
GZI_SUFFIX = ".index.gzi"
READDB_SUFFIX = ".index.readdb"

BESIDE_READS = (SEQUENCE_SUFFIX, FAI_SUFFIX, GZI_SUFFIX, READDB_SUFFIX)
BESIDE_ALIGNMENTS = (".bai", ".csi", ".crai")
BESIDE_REFERENCE = (".fai", ".gzi")
BESIDE_SLOW5 = (".idx",)
