"""Events of two samples compared by position or k-mer."""
