package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

type place struct {
	topic     string
	partition int32
}

// member is a group consumer that its own goroutine polls, with everything it received.
type member struct {
	client                  *kgo.Client
	done                    chan struct{}
	mutex                   sync.Mutex
	held                    map[place]bool
	records                 []*kgo.Record
	assigned, revoked, lost int
	failed                  string
}

var members = map[string]*member{}

func options(request *Request) ([]kgo.Opt, error) {
	opts, err := seeds(request)
	if err != nil {
		return nil, err
	}
	opts = append(opts, kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if request.Isolation == "read_committed" {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if request.Pattern != "" {
		return append(opts, kgo.ConsumeRegex(), kgo.ConsumeTopics(request.Pattern)), nil
	}
	return append(opts, kgo.ConsumeTopics(request.Topics...)), nil
}

func grouped(request *Request) ([]kgo.Opt, error) {
	opts, err := options(request)
	if err != nil {
		return nil, err
	}
	opts = append(opts, kgo.ConsumerGroup(request.Group))
	if request.Instance != "" {
		opts = append(opts, kgo.InstanceID(request.Instance))
	}
	switch request.Protocol {
	case "range":
		return append(opts, kgo.Balancers(kgo.RangeBalancer())), nil
	case "roundrobin":
		return append(opts, kgo.Balancers(kgo.RoundRobinBalancer())), nil
	case "cooperative-sticky":
		return append(opts, kgo.Balancers(kgo.CooperativeStickyBalancer())), nil
	case "consumer":
		return append(opts, kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer()), nil
	}
	return nil, fmt.Errorf("no protocol %q", request.Protocol)
}

func join(_ context.Context, request *Request) (any, error) {
	opts, err := grouped(request)
	if err != nil {
		return nil, err
	}
	m := &member{done: make(chan struct{}), held: map[place]bool{}}
	opts = append(opts,
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, parts map[string][]int32) { m.note(&m.assigned, parts, true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, parts map[string][]int32) { m.note(&m.revoked, parts, false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, parts map[string][]int32) { m.note(&m.lost, parts, false) }),
	)
	if m.client, err = kgo.NewClient(opts...); err != nil {
		return nil, err
	}
	members[request.Member] = m
	go m.poll()
	return empty, nil
}

func (m *member) note(count *int, parts map[string][]int32, holds bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	*count++
	for topic, partitions := range parts {
		for _, partition := range partitions {
			if holds {
				m.held[place{topic, partition}] = true
			} else {
				delete(m.held, place{topic, partition})
			}
		}
	}
}

func (m *member) poll() {
	defer close(m.done)
	for {
		fetches := m.client.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		m.mutex.Lock()
		for _, each := range fetches.Errors() {
			if !errors.Is(each.Err, context.Canceled) {
				m.failed = each.Err.Error()
			}
		}
		m.records = append(m.records, fetches.Records()...)
		m.mutex.Unlock()
	}
}

func state(_ context.Context, request *Request) (any, error) {
	m := members[request.Member]
	m.mutex.Lock()
	defer m.mutex.Unlock()
	assignment := [][]any{}
	for each := range m.held {
		assignment = append(assignment, []any{each.topic, each.partition})
	}
	records := [][]any{}
	for _, each := range m.records[request.From:] {
		records = append(records, []any{each.Topic, each.Partition, each.Offset, string(each.Value)})
	}
	answer := map[string]any{
		"assigned": m.assigned, "revoked": m.revoked, "lost": m.lost,
		"failed": nil, "assignment": assignment, "records": records,
	}
	if m.failed != "" {
		answer["failed"] = m.failed
	}
	return answer, nil
}

func commit(ctx context.Context, request *Request) (any, error) {
	return empty, members[request.Member].client.CommitUncommittedOffsets(ctx)
}

func leave(ctx context.Context, request *Request) (any, error) {
	m := members[request.Member]
	delete(members, request.Member)
	m.client.CloseAllowingRebalance()
	select {
	case <-m.done:
		return empty, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
