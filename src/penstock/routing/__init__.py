"""One request of a client as requests to the nodes of a cluster, and their answers as one answer.

Thinking only: what it needs of the world it asks for in steps, which the runtime (or the simulation) carries out.
"""
