package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

var producers = map[string]*kgo.Client{}

// txnOpen opens a transactional producer and makes it fetch its id, which fences an older one.
func txnOpen(ctx context.Context, request *Request) (any, error) {
	opts, err := seeds(request)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(opts, kgo.TransactionalID(request.ID), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return nil, err
	}
	producers[request.Producer] = client
	_, _, err = client.ProducerID(ctx)
	return empty, err
}

func txnBegin(_ context.Context, request *Request) (any, error) {
	return empty, producers[request.Producer].BeginTransaction()
}

func txnSend(ctx context.Context, request *Request) (any, error) {
	records := []*kgo.Record{}
	for _, value := range request.Values {
		records = append(records, &kgo.Record{Topic: request.Topic, Partition: request.Partition, Value: []byte(value)})
	}
	return empty, producers[request.Producer].ProduceSync(ctx, records...).FirstErr()
}

func txnCommit(ctx context.Context, request *Request) (any, error) {
	return empty, producers[request.Producer].EndTransaction(ctx, kgo.TryCommit)
}

func txnAbort(ctx context.Context, request *Request) (any, error) {
	return empty, producers[request.Producer].EndTransaction(ctx, kgo.TryAbort)
}

func txnClose(_ context.Context, request *Request) (any, error) {
	producers[request.Producer].Close()
	delete(producers, request.Producer)
	return empty, nil
}

// copyAll moves Count records from Topics to Target, each poll in a transaction that holds its offsets.
func copyAll(ctx context.Context, request *Request) (any, error) {
	request.Isolation = "read_committed"
	opts, err := grouped(request)
	if err != nil {
		return nil, err
	}
	session, err := kgo.NewGroupTransactSession(append(opts, kgo.TransactionalID(request.ID))...)
	if err != nil {
		return nil, err
	}
	defer session.CloseAllowingRebalance()
	for copied := 0; copied < request.Count; {
		fetches := session.PollRecords(ctx, 37)
		if err := fetches.Err0(); err != nil {
			return nil, fmt.Errorf("after %d: %w", copied, err)
		}
		if err := session.Begin(); err != nil {
			return nil, err
		}
		for _, each := range fetches.Records() {
			session.Produce(ctx, &kgo.Record{Topic: request.Target, Value: append([]byte("copy of "), each.Value...)}, nil)
		}
		committed, err := session.End(ctx, kgo.TryCommit)
		if err != nil {
			return nil, err
		}
		if committed {
			copied += fetches.NumRecords()
		}
	}
	return empty, nil
}
