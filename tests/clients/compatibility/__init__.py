"""What the server does with every action of the botocore model, as a table that a test keeps true."""
