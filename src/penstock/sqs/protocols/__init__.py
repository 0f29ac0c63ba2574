"""The wire protocols of SQS: JSON and Query requests in, JSON and XML answers out."""
