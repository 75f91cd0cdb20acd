"""Parts of a run: their plan, folders and outputs."""
