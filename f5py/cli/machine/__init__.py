"""Commands about the machine."""
