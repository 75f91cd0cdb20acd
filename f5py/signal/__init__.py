"""From raw signal to events and their scaling."""
