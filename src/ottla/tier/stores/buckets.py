"""From a location to obstore's bucket: which options there are for each cloud, and where credentials come from.

Nothing here has credentials: obstore finds them in the environment, in files that the environment names, or as a role
of the machine, container or Kubernetes pod. Only AWS' profile files are read by us (`aws_profile.py`).
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from ottla.model import limits
from ottla.model.store_location import StoreKind, StoreLocation
from ottla.tier.stores.aws_profile import profile_of
from ottla.tier.stores.cloud import Bucket, CloudObjectStore
from ottla.tier.stores.errors import StoreBroken
from ottla.tier.stores.redaction import redacted, secrets_of

if TYPE_CHECKING:
    from obstore.store import AzureConfig, BackoffConfig, ClientConfig, RetryConfig, S3Config

_BACKOFF: BackoffConfig = {
    "init_backoff": timedelta(seconds=limits.STORE_PAUSE_S),
    "max_backoff": timedelta(seconds=limits.STORE_PAUSE_S_MAX),
    "base": 2,
}
_ONCE: RetryConfig = {"max_retries": 0, "retry_timeout": timedelta(seconds=limits.STORE_PART_RETRY_S)}
_AGAIN: RetryConfig = {
    "max_retries": limits.STORE_PART_RETRIES,
    "retry_timeout": timedelta(seconds=limits.STORE_PART_RETRY_S),
    "backoff": _BACKOFF,
}


def open_cloud(location: StoreLocation) -> CloudObjectStore:
    """Blocks for some milliseconds: certificates of authorities are read. Sends nothing."""
    secrets = secrets_of(os.environ)
    try:
        once, again = (_bucket(location, retry) for retry in (_ONCE, _AGAIN))
    except (BaseError, ValueError, OSError) as error:
        problem = redacted(str(error).partition("\n\nDebug source:")[0], secrets)
    else:
        return CloudObjectStore(once, again, location.prefix, secrets)
    raise StoreBroken(f"{location.shown}: {problem}", "check ottla.remote.storage and the environment")


def _bucket(location: StoreLocation, retry: RetryConfig) -> Bucket:
    client = _client(location)
    match location.kind:
        case StoreKind.S3:
            return _s3(location, client, retry)
        case StoreKind.GCS:
            return GCSStore(location.container, client_options=client, retry_config=retry)
        case StoreKind.AZURE:
            azure: AzureConfig = {"account_name": location.account}
            if (endpoint := location.options.get("endpoint")) is not None:
                azure["endpoint"] = endpoint
            return AzureStore(location.container, config=azure, client_options=client, retry_config=retry)
        case StoreKind.FILE:
            raise ValueError("a directory is no bucket")


def _s3(location: StoreLocation, client: ClientConfig, retry: RetryConfig) -> S3Store:
    options = location.options
    profile = profile_of(options.get("profile"))
    config: S3Config = {}
    if (region := options.get("region") or (profile.region if profile is not None else None)) is not None:
        config["region"] = region
    if (endpoint := options.get("endpoint")) is not None:
        config["endpoint"] = endpoint
    if (encryption := options.get("sse")) is not None:
        config["server_side_encryption"] = encryption
    if (key := options.get("kms-key")) is not None:
        config["sse_kms_key_id"] = key
    if options.get("style") == "virtual":
        config["virtual_hosted_style_request"] = True
    if profile is not None:
        profile()  # says at once what is missing
    return S3Store(
        location.container, config=config, client_options=client, retry_config=retry, credential_provider=profile
    )


def _client(location: StoreLocation) -> ClientConfig:
    client: ClientConfig = {
        "connect_timeout": timedelta(seconds=limits.STORE_CONNECT_S),
        "timeout": timedelta(seconds=limits.STORE_REQUEST_S),
        "user_agent": "ottla",
    }
    if location.options.get("endpoint", "").startswith("http://"):
        client["allow_http"] = True
    if (authorities := location.options.get("ca")) is not None:
        client["root_certificate"] = Path(authorities).read_bytes()
    return client
