"""Hidden Markov model of events and k-mers: states, transitions and emissions.

The model follows the k-mers of a sequence. Every k-mer j has three states:

* M, a match: an event of that k-mer;
* B, a bad event, which fits no k-mer;
* K, a silent skip: the k-mer has no event.

Transitions, with p_stay = 1 - 1 / (events per base), at least `MIN_STAY`, and p_step = 1 - p_stay - P_SKIP - P_BAD::

    from M(j): to M(j) p_stay, to M(j + 1) p_step, to B(j) P_BAD, to K(j + 1) P_SKIP
    from B(j): to B(j) P_BAD, to M(j), M(j + 1) and K(j + 1) P_FROM_BAD each
    from K(j): to K(j + 1) P_SKIP_SELF, to M(j + 1) P_FROM_SKIP

An event of mean x in M(j) has a normal density with mean ``scale * level + shift`` and standard deviation ``stdv *
var``, with the pore model's level and stdv of the k-mer. In B(j) every event has density 1.

`f5py.methylation.hmm` sums over paths, `f5py.event_alignment` takes the best one.

Sources: `src/hmm.c` of f5c; Simpson et al., Nature Methods 14:407, 2017.
"""

P_SKIP = 0.0025
P_BAD = 0.001
P_FROM_BAD = (1.0 - P_BAD) / 3.0
P_SKIP_SELF = 0.3
P_FROM_SKIP = 1.0 - P_SKIP_SELF
#: Least probability of staying, for reads with fewer events than bases.
MIN_STAY = 1e-3
#: ln(1 / sqrt(2 pi)), with f5c's digits.
LN_INVERSE_SQRT_2PI = -0.918938
