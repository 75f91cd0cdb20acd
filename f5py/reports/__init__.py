"""HTML reports and their charts."""
