// Command harness drives franz-go by JSON lines: one request per line in, one answer per line out, in order.
// The verbs are those of tests/java/clients/Groups.java, plus "copy", "share_…", "…_acls" and "sr_…".
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Request is the union of what the verbs take.
type Request struct {
	Verb      string            `json:"verb"`
	Bootstrap string            `json:"bootstrap"`
	Member    string            `json:"member"`
	Producer  string            `json:"producer"`
	Group     string            `json:"group"`
	Instance  string            `json:"instance"`
	Protocol  string            `json:"protocol"`
	Pattern   string            `json:"pattern"`
	ID        string            `json:"id"`
	Topic     string            `json:"topic"`
	Topics    []string          `json:"topics"`
	Target    string            `json:"target"`
	Partition int32             `json:"partition"`
	Values    []string          `json:"values"`
	Count     int               `json:"count"`
	From      int               `json:"from"`
	TimeoutMs int               `json:"timeout_ms"`
	Isolation string            `json:"isolation"`
	Acks      []Acknowledgement `json:"acks"`
	URL       string            `json:"url"`
	Subject   string            `json:"subject"`
	Type      string            `json:"type"`
	Schema    string            `json:"schema"`
	Objects   []json.RawMessage `json:"objects"`
	ACLs      []ACL             `json:"acls"`
	Filter    ACL               `json:"filter"`
	Security  *Security         `json:"security"`
}

type verb func(context.Context, *Request) (any, error)

var empty = map[string]any{}

func main() {
	verbs := map[string]verb{
		"join": join, "state": state, "commit": commit, "leave": leave,
		"txn_open": txnOpen, "txn_begin": txnBegin, "txn_send": txnSend, "txn_commit": txnCommit, "txn_abort": txnAbort,
		"txn_close": txnClose, "copy": copyAll,
		"share_join": shareJoin, "share_poll": sharePoll, "share_ack": shareAck, "share_commit": shareCommit, "share_leave": shareLeave,
		"create_acls": createACLs, "describe_acls": describeACLs, "delete_acls": deleteACLs,
		"sr_write": srWrite, "sr_read": srRead, "sr_tour": srTour,
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		request := &Request{}
		answer, err := any(nil), json.Unmarshal(line, request)
		if err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
			if run, known := verbs[request.Verb]; known {
				answer, err = run(ctx, request)
			} else {
				err = fmt.Errorf("no verb %q", request.Verb)
			}
			cancel()
		}
		if err != nil {
			answer = map[string]string{"error": fmt.Sprintf("%T", err), "message": err.Error(), "trace": ""}
		}
		if out.Encode(answer) != nil {
			return
		}
	}
}
