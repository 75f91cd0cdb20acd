"""Calls of single sites within a group.

A group's call says whether all of its sites are methylated or none is. Here each site i of n gets a log-likelihood
ratio of its own, in which the states of the other sites are summed out::

    LLR_i = ln P(events | s_i = 1) - ln P(events | s_i = 0)
    P(events | s_i = v) = 2 * sum over s with s_i = v of P(events | s) * P(s)

P(events | s) is the likelihood of the events in the group's window under the hidden Markov model of
`f5py.methylation.calls`, for the window's bases with those sites methylated that have s_i = 1.

The prior. With probability a the sites of a group agree, methylated or not with odds of one to one; otherwise each
is what it is independently of the others, all 2 ** n states being equally probable::

    P(s) = a / 2 * [all s_i are equal] + (1 - a) / 2 ** n

so that ``P(events | s_i = 1) = a * L1 + (1 - a) * S1``, where L1 is the likelihood with all sites methylated, which
the group's call uses as well, and S1 the mean likelihood of the 2 ** (n - 1) states with s_i = 1; likewise for 0. With
a = 0 the ratio is that of the uniform prior, and a = 1 gives every site the group's call. By default a is learned from
the read: it is the expected share of the read's groups whose sites agree, given its groups of two and more sites. Most
reads are of one kind throughout, and in real reads the levels that a model lacks look like sites that differ. So the
prior of the share is 0.995 with probability 0.99, and otherwise has density Beta(1, 4); and the groups' evidence, the
product of ``a * o + 1 - a`` over the odds o that each group's sites agree, is taken to the power of one half, as
neighbouring groups share what the model lacks. A read whose sites differ has thus to show it, by some ten groups; until
it has, every site gets all but its group's call. With correlated noise, which the model lacks otherwise, the evidence
is calibrated and taken as it is: five groups suffice. In a read that is methylated throughout, or nowhere, neighbouring
sites support each other as much as in a group's call; in one whose sites are independent they do not.

The sum over 2 ** n states is exact and takes time in proportion to n. The state of a site only matters to the k k-mers
that its modified base is part of, so the forward algorithm carries, beside each state of the model at k-mer j, only
the states of the sites under that k-mer: 2 ** w lanes, where w is the most sites that share a k-mer (one or two for
most groups, at most three for CG and k = 6). Lane bit ``i mod w`` is the state of site i. Every path goes through the
k-mers in order and enters each exactly once. So where site i + w comes under the k-mer, site i has left it, and its
state is summed out by giving the two lanes of each pair their mean. A forward pass yields the probability of the
events together with the states of the last w sites. For the sites before, the flow over a boundary between two
k-mers, forward mass times backward mass summed over all events, is split by lane: the boundary before site w * (b + 1)
enters serves the sites w * b to w * b + w - 1. With correlated noise the density after a step is one of two k-mers,
and w is the most sites that share k + 1 bases; so a site has left both when its bit is handed over.

A group of one site has the same likelihoods as in the group's call. The sites that are called are those of the groups
that are called. Where sites overlap each other, which only sites of a user's motif can, each has a state of its own.
"""
