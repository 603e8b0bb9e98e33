"""Locks in DynamoDB: the commit strategy `dynamodb-lock`."""
