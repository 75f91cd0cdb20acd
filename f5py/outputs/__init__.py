"""What is made of a batch: rows and records, and the files that they go to."""
