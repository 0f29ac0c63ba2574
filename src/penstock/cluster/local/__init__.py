"""The plan of a cluster on one machine, and the configuration of its balancer."""
