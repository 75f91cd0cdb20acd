"""Modified bases of alignments, as the tags MM, ML and MN say them."""
