"""The clocks of the machine, and their maximum errors."""
