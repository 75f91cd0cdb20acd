"""The three concurrent stages: load, compute, write, and the flat arrays that go through them."""
