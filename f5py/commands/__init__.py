"""One engine per subcommand: from an options object to files."""
