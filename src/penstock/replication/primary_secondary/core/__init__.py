"""One partition: epochs, commitment, progress of replicas. Pure decisions without a node around them."""
