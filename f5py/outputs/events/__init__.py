"""What ``eventalign`` writes."""
