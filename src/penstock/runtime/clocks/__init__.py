"""The clocks of the machine, and how wrong they can be."""
