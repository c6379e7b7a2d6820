"""One replica of a partition, as leader or follower: high watermark, in-sync replicas, the readable range.

The roles of a `partition.Partition`, and the effect of each call on it:

| role | event | what happens |
|---|---|---|
| any | terms of an older leader or partition epoch | nothing |
| any | terms that name this node (`lead`) | becomes leader with the ISR of the terms; followers' log ends are unknown |
| any | terms that name another node, or none (`follow`) | follows that node; refuses appends and followers |
| leads | `append` | appends to its log; refuses with NOT_ENOUGH_REPLICAS if acks=all and too few replicas are in sync |
| leads | `fetch_as_follower` | notes the follower's log end; may move the high watermark or propose an ISR |
| leads | `fetch_as_follower` with a diverging log | the fetch does not count; the answer says where the epoch ended |
| leads | `isr_proposal` | proposes to add followers that caught up, else to remove those that fell behind |
| leads | `proposal_accepted` | adopts the proposed ISR; the high watermark moves as far as this ISR allows |
| leads | `proposal_refused` | keeps the former ISR if the error is sure to mean no change; else waits for terms |
| leads alone | `append` | the high watermark follows at once, or after the fsync (`durable`) |
| follows | `append_fetched` | appends the bytes unchanged; takes over the leader's high watermark and log start |
| follows | `truncate_for` | truncates its log where it diverges from the leader's, and the high watermark |
| follows | `begin_at` | throws its log away, because the leader's log starts beyond its end |
| any | `written`, `synced` | records that waited for the disk now count for the high watermark |
| any | `write_failed` | truncates the records that wait to be written: no reader has seen them |
| any | `sync_failed` | if it leads alone and is `durable`: truncates everything above the high watermark |
"""
