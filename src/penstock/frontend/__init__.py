"""The SQS front end: a pipeline of steps, from an HTTP request to native requests and back to an HTTP answer.

Stateless and synchronous: what it needs of the world (the engine, the metadata store, the clock) is asked for with
steps that somebody else carries out.
"""
