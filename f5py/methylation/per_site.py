"""Calls of single sites within a group.

A group's call says whether all of its sites are methylated or none. Here each site i of n gets its own log-likelihood
ratio, summed over the states of the other sites::

    LLR_i = ln P(events | s_i = 1) - ln P(events | s_i = 0)
    P(events | s_i = v) = 2 * sum over s with s_i = v of P(events | s) * P(s)

P(events | s) is the likelihood of the events in the group's window under the hidden Markov model of
`f5py.methylation.calls`, for the window's bases with the sites of s_i = 1 methylated.

The prior. With probability a the sites of a group agree, methylated or not with odds of one to one. Otherwise the sites
are independent, and all 2 ** n states equally probable::

    P(s) = a / 2 * [all s_i are equal] + (1 - a) / 2 ** n

Then ``P(events | s_i = 1) = a * L1 + (1 - a) * S1``. L1 is the likelihood with all sites methylated, as in the
group's call, and S1 the mean likelihood of the 2 ** (n - 1) states with s_i = 1; likewise for 0. With a = 0 the
prior is uniform, and with a = 1 every site gets the group's call. By default a is learned from the read: it is the
expected share of the read's groups of two and more sites with agreeing sites. Most reads are of one kind
throughout, and in real reads errors of the model's levels look like differing sites. So the prior of the share is
0.995 with probability 0.99, and otherwise Beta(1, 4). The groups' evidence is the product of ``a * o + 1 - a`` over
the odds o that each group's sites agree. It is raised to the power of one half, as neighboring groups share the
model's errors. A read with differing sites needs about ten groups to show it; until then, every site gets almost
its group's call. With correlated noise, part of the model, the evidence is calibrated and used in full: five groups
suffice. In a read methylated throughout, or nowhere, neighboring sites support each other as in a group's call. In
a read with independent sites they do not.

The sum over 2 ** n states is exact and takes time in proportion to n. A site's state affects only the k k-mers with its
modified base. So the forward algorithm stores, for each state of the model at k-mer j, only the states of the sites
under that k-mer. These are 2 ** w lanes, where w is the most sites that share a k-mer (one or two for most groups, at
most three for CG and k = 6). Lane bit ``i mod w`` is the state of site i. Every path goes through the k-mers in order
and enters each exactly once. When site i + w comes under the k-mer, site i has left it, and its state is summed out:
the two lanes of each pair get their mean. A forward pass yields the probability of the events together with the states
of the last w sites. The sites before need the flow over boundaries between two k-mers: forward times backward mass,
summed over all events, by lane. The boundary before site w * (b + 1) enters serves the sites w * b to w * b + w - 1.
With correlated noise the density after a step depends on two k-mers, and w is the most sites that share k + 1 bases, so
a site has left both when its bit is reused.

A group of one site has the likelihoods of the group's call. The called sites are those of the called groups. Sites
overlap each other only for users' motifs; each has its own state.
"""
