"""What a request asks of the world while it is worked on: values that it yields, and the runner that carries them out.

An action of the front end and the routing of a request are generators. Each yields a step, is sent the outcome (or has it
thrown in), and returns its result. The same code runs over sockets, in the simulation, and in tests without either.
"""
