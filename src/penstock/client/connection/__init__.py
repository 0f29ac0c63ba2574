"""Connections to a server: address, greeting, link, routes."""
