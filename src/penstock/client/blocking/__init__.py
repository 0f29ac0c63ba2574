"""The blocking twin: the same calls without `await`, carried out by the async client on a thread of its own."""
