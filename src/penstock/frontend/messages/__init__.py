"""Messages, receipts and numbers as SQS writes them."""
