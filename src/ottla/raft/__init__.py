"""KRaft consensus, pure: events in, effects out.

`node.RaftNode` is one replica of the metadata journal; `events`, `effects` and `port` are what it has in common with
the world. Its parts: `voters` (who votes), `roles` (what a node may be and become), `election`, `leading`, `serving`
(what a leader answers), `following`, `membership`, `doubt`, `answers`, `describe`.
"""
