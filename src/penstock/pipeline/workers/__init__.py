"""The Python processes that Spark starts on this machine: there at once, because what they import is imported already."""
