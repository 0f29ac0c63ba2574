"""Reports lifecycle rows."""
