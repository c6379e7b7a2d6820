"""Membership in a group: the classic protocol (`classic`) and KIP-848's (`modern`), behind the same few methods.

    subscribe()  what the member wants
    is_due()     whether `advance` has anything to do; asked by every poll
    advance()    for `poll`: let partitions go and take new ones, as far as the group has decided
    forfeit()    a commit showed that the group has gone on without this member
    leave()      say goodbye
    metadata     who this member is at the moment
    may_commit   whether the coordinator takes commits of this member now

Both keep a background task that says to the coordinator that the member lives; it never touches what is owned.
"""
