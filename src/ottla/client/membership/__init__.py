"""Membership in a group: the classic protocol (`classic`) and KIP-848's (`modern`), behind the same few methods.

    subscribe()  set the member's subscription
    is_due()     whether `advance` has anything to do; called by every poll
    advance()    for `poll`: revoke partitions and take new ones, as the group has decided
    forfeit()    a commit showed that the group has gone on without this member
    leave()      leave the group
    metadata     the member's current identity in the group
    may_commit   whether the coordinator accepts commits of this member now

Both have a background task that sends heartbeats to the coordinator; it never changes the owned partitions.
"""
