"""One replica of a partition leads, the others follow: epochs, commitment, catching up."""
