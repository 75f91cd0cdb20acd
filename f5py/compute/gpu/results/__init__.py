"""Results of a batch on a GPU from its events there: scores of groups and sites, rows of events."""
