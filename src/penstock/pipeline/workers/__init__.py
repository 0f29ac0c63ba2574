"""The Python processes that Spark starts on this machine, started fast because their imports are done in advance."""
