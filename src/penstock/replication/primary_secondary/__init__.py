"""One replica of a partition leads, the others follow: epochs, commits, catching up."""
