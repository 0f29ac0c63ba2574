"""Jobs: what Spark makes of usage and lifecycles. Each is a declared object and pure functions of tables."""
