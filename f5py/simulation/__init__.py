"""Made-up nanopore reads whose methylation is known."""
