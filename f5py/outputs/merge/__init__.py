"""Join the outputs of several runs into one file."""
