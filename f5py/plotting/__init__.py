"""Drawing the signal of a read with its events and bases. The drawing itself needs matplotlib."""

#: File formats of figures, which are also the endings of the files' names.
FORMATS = ("png", "svg", "pdf", "html")
