"""Receiving: messages, consumers, subscriptions, browsing."""
