"""The HTTP/1.1 server of the SQS front end: bytes in, complete requests to a handler, answers out in order."""
