"""KRaft consensus, pure: events in, effects out.

`node.RaftNode` is one replica of the metadata journal; `events`, `effects` and `journal` are its interface to the
outside. Its parts: `voters` (the voter sets), `roles` (the roles of a node and their transitions), `election`,
`leading`, `replica_progress` (how far the others are), `serving` (a leader's answers to fetches), `following`,
`membership`, `lost_disk`, `answers`.
"""
