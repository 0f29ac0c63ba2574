"""One client request as requests to the nodes of a cluster, and their answers as one answer.

It only decides. It yields steps for everything outside, which the runtime (or the simulation) carries out.
"""
