"""The metadata quorum."""

# How long a leader of the quorum holds back an empty answer to a fetch.
RAFT_FETCH_WAIT_MS_MAX = 500
# Voters whose leader's process is gone stand for election one after the other, so that they do not split the votes.
RAFT_STAGGER_MS = 15
# The first wait after an election without a winner; doubled with each further one.
RAFT_ELECTION_BACKOFF_MS = 20
# Replicas of the journal, observers included, whose progress a leader keeps.
RAFT_REPLICAS_MAX = 10_000
# Epochs up to the first bound are always believed; higher ones only if they exceed the own epoch by no more than the
# second.
RAFT_EPOCH_ANY_MAX = 2**30
RAFT_EPOCH_LEAP_MAX = 1_000
# A voter in doubt that knows no leader logs that after this time, and then at this interval.
RAFT_DOUBT_FIRST_REPORT_MS = 5_000
RAFT_DOUBT_REPORT_MS = 30_000
# DescribeQuorum does not show an observer that has not fetched for this long.
RAFT_OBSERVER_MS_MAX = 300_000
