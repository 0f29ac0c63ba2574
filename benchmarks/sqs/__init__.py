"""`penstock bench --sqs`: the SQS door, measured with signed requests from processes of their own."""
