"""Usage: one event per request, collected without slowing the request down."""
