"""Parts of a run's compiled code: what compiles each of them, and loads it if it is kept."""
