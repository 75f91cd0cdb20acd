"""Hits: chains ranked, aligned and judged."""
