"""/ and /v1/metadata: whether the registry is up, and facts about it."""

from __future__ import annotations

from typing import Any

from ottla.registry.routes.call import Call
from ottla.registry.routes.table import route
from ottla.registry.security.subject_rights import SubjectRight


@route("GET", "/", SubjectRight.AUTHENTICATED)
@route("POST", "/", SubjectRight.AUTHENTICATED)
async def root(call: Call) -> Any:
    return {}


@route("GET", "/v1/metadata/id", SubjectRight.AUTHENTICATED)
async def get_cluster_id(call: Call) -> Any:
    about = call.store.about
    clusters = {"kafka-cluster": about.cluster_id, "schema-registry-cluster": about.group_id}
    return {"scope": {"path": [], "clusters": clusters}}


@route("GET", "/v1/metadata/version", SubjectRight.AUTHENTICATED)
async def get_server_version(call: Call) -> Any:
    return {"version": call.store.about.version, "commitId": call.store.about.commit}


@route("GET", "/v1/metadata/deployment", SubjectRight.AUTHENTICATED)
async def get_deployment(call: Call) -> Any:
    return {}
