"""Settling delivered messages, and keeping their leases."""
