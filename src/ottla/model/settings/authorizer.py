"""Access control: whether requests are checked against the cluster's ACLs, and for whom they are not."""

from ottla.model.section import HIGH, LOW, Section
from ottla.model.validators import Items

# Kafka's own authorizer, whose rules are built in (`security/access_rules.py`).
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

authorizer = Section("Access control", "Whether requests are checked against the cluster's ACLs.")

AUTHORIZER_CLASS_NAME = authorizer.text(
    "authorizer.class.name",
    "",
    f"Class that decides what is allowed: `{STANDARD_AUTHORIZER}`; empty allows everything.",
    importance=LOW,
)
SUPER_USERS = authorizer.text(
    "super.users",
    "",
    "Principals that may do everything, separated by semicolons: `User:admin;User:kafka`.",
    of_plugin=True,
)
ALLOW_EVERYONE_IF_NO_ACL_FOUND = authorizer.boolean(
    "allow.everyone.if.no.acl.found",
    False,
    "Allow everyone to use a resource to which no ACL applies; otherwise only super users may use it.",
    of_plugin=True,
)
EARLY_START_LISTENERS = authorizer.optional_items(
    "early.start.listeners",
    "Controller listeners that serve super users before the ACLs are loaded; by default all; never those of brokers.",
    valid=Items(),
    importance=HIGH,
)
