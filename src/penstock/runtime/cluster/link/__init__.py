"""The link from a front end to a cluster: many connections to nodes that look like one engine."""
