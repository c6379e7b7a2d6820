"""Every API of the protocol, one module each with its request and its response.

Names are Kafka's, mechanically: fields in snake_case (`KRaftVersion` is `kraft_version`), structs without the prefix
they share with their message (`OffsetCommitRequestTopic` is `OffsetCommitRequest.Topic`). A struct that a message
uses in several places stands at the top of its module, or of its class. A field is required unless Kafka gives it a
default, some version lacks it, or it is a throttle time. In the version lists, `+` are fields that came, `-` fields
that went, `null` fields that may be null from then on.
"""
