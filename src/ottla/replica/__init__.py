"""One replica of a partition, as its leader or a follower sees it: high watermark, in-sync replicas, what may be read.

What `partition.Partition` is, and what each call does to it:

| role | event | what happens |
|---|---|---|
| any | terms of an older leader or partition epoch | nothing |
| any | terms that name this node (`lead`) | leads: the ISR is that of the terms, followers have everything to prove |
| any | terms that name another node, or none (`follow`) | follows it: no appends of producers, no followers |
| leads | `append` | to its log; refused with NOT_ENOUGH_REPLICAS if acks=all and too few are in sync |
| leads | `fetch_as_follower` | notes how far it is; the high watermark moves; it may be proposed for the ISR |
| leads | `fetch_as_follower`, but the histories part | nothing counts; the answer says where the epoch ended |
| leads | `isr_proposal` | proposes whoever caught up, else to go on without whoever fell behind; one at a time |
| leads | `proposal_accepted` | that is the ISR; the high watermark moves as far as that lets it |
| leads | `proposal_refused` | certainly not done: as before it; else the next terms decide |
| leads alone | `append` | counts at once, or when it is on disk (`durable`) |
| follows | `append_fetched` | to its log as it is; takes over high watermark and log start |
| follows | `truncate_for` | cuts its log where the histories part; the high watermark goes back with it |
| follows | `begin_at` | throws its log away: the leader's begins behind it |
| any | `written`, `synced` | what waited for the disk counts from now on |
| any | `write_failed` | what waits is cut off: nobody has seen it |
| any | `sync_failed` | leading alone and `durable`: everything above the high watermark is cut off |
"""
