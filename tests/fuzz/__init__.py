"""Fuzzing of every input: mutations that know a format's structure, one process for each case, and a verdict on each.

``python -m tests.fuzz --hours 1`` goes on with new seeds; ``--cases 100000 --report FILE`` writes a table of outcomes;
a case that failed is repeated with ``--target NAME --seed N --keep FOLDER``, and ``--save`` puts it into ``corpus``.
`test_fuzz` runs a fixed set, and everything that is in the corpus.
"""
