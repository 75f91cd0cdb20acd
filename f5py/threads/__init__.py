"""Pools of threads, ordered work, and interrupts."""

#: Environment in which NumPy, imported later, starts no threads for it. They would spin for a tenth of a second on
#: every core, at the start of each process, and matrices here have a few dozen columns.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
