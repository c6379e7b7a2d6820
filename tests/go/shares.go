package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Acknowledgement says what becomes of one acquired record.
type Acknowledgement struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Type      string `json:"type"`
}

// sharer is a share consumer and the records it holds.
type sharer struct {
	client *kgo.Client
	held   map[string]*kgo.Record
}

var sharers = map[string]*sharer{}

var statuses = map[string]kgo.AckStatus{
	"accept": kgo.AckAccept, "release": kgo.AckRelease, "reject": kgo.AckReject, "renew": kgo.AckRenew,
}

func spot(topic string, partition int32, offset int64) string {
	return fmt.Sprintf("%s-%d-%d", topic, partition, offset)
}

func shareJoin(_ context.Context, request *Request) (any, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(request.Bootstrap), kgo.ShareGroup(request.Group), kgo.ConsumeTopics(request.Topics...),
	}
	if request.Count > 0 {
		opts = append(opts, kgo.ShareMaxRecords(int32(request.Count)), kgo.ShareMaxRecordsStrict())
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	sharers[request.Member] = &sharer{client, map[string]*kgo.Record{}}
	return empty, nil
}

// sharePoll waits up to TimeoutMs for records; none is an answer too.
func sharePoll(ctx context.Context, request *Request) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(request.TimeoutMs)*time.Millisecond)
	defer cancel()
	s := sharers[request.Member]
	fetches := s.client.PollFetches(ctx)
	for _, each := range fetches.Errors() {
		if !errors.Is(each.Err, context.DeadlineExceeded) {
			return nil, each.Err
		}
	}
	records := [][]any{}
	for _, each := range fetches.Records() {
		s.held[spot(each.Topic, each.Partition, each.Offset)] = each
		records = append(records, []any{each.Topic, each.Partition, each.Offset, string(each.Value), each.DeliveryCount()})
	}
	return records, nil
}

func shareAck(_ context.Context, request *Request) (any, error) {
	s := sharers[request.Member]
	for _, each := range request.Acks {
		record, held := s.held[spot(each.Topic, each.Partition, each.Offset)]
		if !held {
			return nil, fmt.Errorf("%s was not acquired", spot(each.Topic, each.Partition, each.Offset))
		}
		s.client.MarkAcks(statuses[each.Type], record)
	}
	return empty, nil
}

func shareCommit(ctx context.Context, request *Request) (any, error) {
	return empty, sharers[request.Member].client.FlushAcks(ctx)
}

func shareLeave(_ context.Context, request *Request) (any, error) {
	sharers[request.Member].client.Close()
	delete(sharers, request.Member)
	return empty, nil
}
