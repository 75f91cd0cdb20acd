"""Messages on stderr, and progress."""
