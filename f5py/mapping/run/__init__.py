"""A whole run of the mapper: its stages, its course, its report."""
