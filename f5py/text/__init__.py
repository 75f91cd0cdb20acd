"""Numbers and bytes as text and back."""
