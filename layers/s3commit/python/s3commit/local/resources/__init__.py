"""The resource types that the loader knows, by CloudFormation name."""

from s3commit.local.resources import compute, messaging, operations, storage
from s3commit.local.resources.model import Context, Place, ResourceType

TYPES: dict[str, ResourceType] = {
    **storage.TYPES,
    **messaging.TYPES,
    **compute.TYPES,
    **operations.TYPES,
}

__all__ = ["TYPES", "Context", "Place", "ResourceType"]
