"""How long tests wait for what must come."""

#: Seconds. It comes at once, or later on a machine that has other things to do; only a test that fails waits so long.
PATIENCE = 300.0
