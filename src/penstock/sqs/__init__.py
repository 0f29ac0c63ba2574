"""The SQS API as pure decisions: bytes in, typed calls out, typed results in, bytes out.

Nothing here opens a socket, reads a clock or makes random numbers: times, ids and secrets are arguments. A front end reads
a request with `call.read_call`, decides with the checks here, and answers with `answers`.
"""
