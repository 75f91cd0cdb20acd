"""From bases to anchors: minimizers, the index of the reference, seeds."""
