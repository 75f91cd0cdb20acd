"""The GPU as a device: its memory, which read goes to it, and advice."""
