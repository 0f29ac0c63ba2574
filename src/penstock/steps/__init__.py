"""What a request needs while it is processed: values that it yields, and the runner that carries them out.

An action of the front end and the routing of a request are generators. Each yields a step, gets the outcome (or it is
raised there), and returns its result. The same code runs over sockets, in the simulation, and in tests without either.
"""
