"""Seeds of the mapper on a GPU."""
