"""Membership in a group: the classic protocol (`classic`) and KIP-848's (`modern`), behind the same few methods.

    advance()   inside `poll`: let partitions go and take new ones, as far as the group has decided
    leave()     say goodbye
    metadata    who this member is at the moment

Both keep a background task that says to the coordinator that the member lives; it never touches what is owned.
"""
