"""Clusters that parts of a plan are worked on by: processes of dask, jobs of Slurm."""
