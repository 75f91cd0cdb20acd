"""Site groups, the hidden Markov model, and calls of groups and of single sites."""
