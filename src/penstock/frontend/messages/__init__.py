"""Messages, receipts and numbers in the form of SQS."""
