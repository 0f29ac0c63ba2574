"""The actions of simulated clients: send, receive, settle, subscribe, administer, and the final drain."""
