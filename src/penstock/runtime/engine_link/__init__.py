"""Ways from the front end to the engine: in this process, or over TCP."""
