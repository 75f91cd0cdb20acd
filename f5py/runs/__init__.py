"""A run of a command on signals: at once, in parts, or while files arrive."""
