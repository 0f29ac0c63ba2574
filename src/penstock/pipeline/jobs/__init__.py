"""Jobs: tables from usage and lifecycle logs. Each is a declared object and pure functions of tables."""
