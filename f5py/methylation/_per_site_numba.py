"""Jitted prior of the sites of a group; see `f5py.methylation.per_site` for the mathematics."""

import math

import numpy as np

from f5py.jit.kernel import kernel
from f5py.methylation._hmm_numba import log_sum

# The prior of the share of groups whose sites agree: a read of one state, or one whose sites differ.
_P_UNIFORM = 0.99
_UNIFORM_SHARE = 0.995
_DIFFERING_POWER = 3.0  # Beta(1, 4)
# The power of the groups' evidence: neighbouring groups share what the model lacks.
_POWER, _POWER_CORRELATED = 0.5, 1.0
_POINTS = 50
_SMALL = 1e-250


@kernel
def _ln_evidence(share, agree, differ):
    """Logarithm of the likelihood of a share: of the product of ``share * agree + (1 - share) * differ``."""
    total = 0.0
    product = 1.0
    for g in range(agree.shape[0]):
        product *= share * agree[g] + (1.0 - share) * differ[g]
        if product < _SMALL:  # one logarithm for many factors, each of which is at least the lesser share
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@kernel
def learn_agreement(odds, power):
    """Estimate the share of groups whose sites agree, from the logarithms of each group's odds that they do.

    The likelihood of a share is taken to that power.
    """
    agree, differ = np.empty(odds.shape[0]), np.empty(odds.shape[0])
    of_all = 0.0
    for g in range(odds.shape[0]):
        greater = max(odds[g], 0.0)  # the greater of the two is made 1
        agree[g], differ[g] = math.exp(odds[g] - greater), math.exp(-greater)
        of_all += greater
    uniform = math.log(_P_UNIFORM) + power * (of_all + _ln_evidence(_UNIFORM_SHARE, agree, differ))
    weights = np.empty(_POINTS)
    for i in range(_POINTS):
        share = (i + 0.5) / _POINTS
        weights[i] = _DIFFERING_POWER * math.log(1.0 - share) + power * (of_all + _ln_evidence(share, agree, differ))
    prior = math.log((1.0 - _P_UNIFORM) * (_DIFFERING_POWER + 1.0) / _POINTS)
    greatest = uniform
    for i in range(_POINTS):
        greatest = max(greatest, prior + weights[i])
    weight = math.exp(uniform - greatest)
    total = weight * _UNIFORM_SHARE
    for i in range(_POINTS):
        one = math.exp(prior + weights[i] - greatest)
        weight += one
        total += one * (i + 0.5) / _POINTS
    return total / weight


@kernel
def weigh_sites(n_sites, groups, noise, agreement, scores):
    """Let the scores of sites and of their groups count as the prior says.

    Parameters
    ----------
    n_sites : int32, shape (n_groups,)
        Of each group of a read.
    groups, scores : Scores
        Log-likelihoods of the groups and, one group after the other, of their sites, which are changed where there are
        several.
    noise : f5py.methylation.correlated.Terms or None
    agreement : float
        Prior probability that all sites of a group have one state; below 0, it is learned from the read.
    """
    n_windows = 0
    for g in range(n_sites.shape[0]):
        if n_sites[g] > 1:
            n_windows += 1
    odds = np.empty(n_windows)
    w = 0
    site = 0
    for g in range(n_sites.shape[0]):
        if n_sites[g] > 1:
            independent = log_sum(np.float64(scores.methylated[site]), np.float64(scores.unmethylated[site]))
            odds[w] = log_sum(np.float64(groups.methylated[g]), np.float64(groups.unmethylated[g])) - independent
            w += 1
        site += n_sites[g]

    power = _POWER if noise is None else _POWER_CORRELATED
    share = learn_agreement(odds, power) if agreement < 0.0 else agreement
    ln_agree, ln_differ = math.log(share), math.log(1.0 - share)
    site = 0
    for g in range(n_sites.shape[0]):
        if n_sites[g] > 1:
            for i in range(site, site + n_sites[g]):
                scores.methylated[i] = log_sum(ln_agree + groups.methylated[g], ln_differ + scores.methylated[i])
                scores.unmethylated[i] = log_sum(ln_agree + groups.unmethylated[g], ln_differ + scores.unmethylated[i])
        site += n_sites[g]
