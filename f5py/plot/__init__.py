"""Drawing the signal of a read with its events and bases. The drawing itself needs matplotlib."""
