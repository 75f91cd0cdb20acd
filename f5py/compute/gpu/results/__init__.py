"""Results of a batch on a GPU, where its events still are: scores of groups and of sites, rows of events."""
