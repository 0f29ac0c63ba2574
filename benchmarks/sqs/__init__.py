"""`penstock bench --sqs`: the SQS server, measured with signed requests from processes of their own."""
