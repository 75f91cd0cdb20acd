r"""Ranking of hits and mapping quality.

With f1 and f2 the scores of the best and the second best chain and m the number of anchors, minimap2's quality is

.. math:: 40\,(1 - f_2 / f_1)\,\min(1, m / 10)\,\ln f_1

(Li, Bioinformatics 34:3094, 2018), since version 2.20 with the scores of the alignments and their identity as well, and
lowered by the share of frequent minimizers and by the number of rivals. Where two hits of a whole read are nearly as
good, mismatches and gaps are first weighed by the divergence of the read. All of that is single precision, from left to
right: see `_mapping_quality_numba`.
"""
