"""The SQS front end: a pipeline of steps, from an HTTP request to native requests and back to an HTTP answer.

It is stateless and synchronous: it yields steps for everything outside (the engine, the metadata store, the clock), and a
`World` carries them out.
"""
