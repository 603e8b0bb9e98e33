"""The hooks of this plugin."""

from collections.abc import Sequence

from icefield import Provider, hookimpl


@hookimpl
def icefield_commit_strategies() -> Sequence[Provider]:
    """Provide the strategy ``dynamodb-lock``."""
    return [Provider(("dynamodb-lock",), "icefield_dynamodb.strategy:DynamoDbLockStrategy", contract=(2, 2))]
