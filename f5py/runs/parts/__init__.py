"""A run in parts: the plan that says what they are, their folders, and their outputs."""
