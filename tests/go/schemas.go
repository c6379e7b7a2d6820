package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

// registered registers the schema of a request.
func registered(ctx context.Context, request *Request) (*sr.Client, sr.SubjectSchema, error) {
	client, err := sr.NewClient(sr.URLs(request.URL))
	if err != nil {
		return nil, sr.SubjectSchema{}, err
	}
	var kind sr.SchemaType
	if err := kind.UnmarshalText([]byte(request.Type)); err != nil {
		return nil, sr.SubjectSchema{}, err
	}
	made, err := client.CreateSchema(ctx, request.Subject, sr.Schema{Schema: request.Schema, Type: kind})
	return client, made, err
}

// srWrite registers the schema and writes the objects with it.
func srWrite(ctx context.Context, request *Request) (any, error) {
	_, made, err := registered(ctx, request)
	if err != nil {
		return nil, err
	}
	serde := sr.NewSerde()
	serde.Register(made.ID, json.RawMessage{}, sr.EncodeFn(func(v any) ([]byte, error) { return v.(json.RawMessage), nil }))
	producer, err := kgo.NewClient(kgo.SeedBrokers(request.Bootstrap), kgo.AllowAutoTopicCreation())
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	for _, object := range request.Objects {
		value, err := serde.Encode(object)
		if err != nil {
			return nil, err
		}
		if err := producer.ProduceSync(ctx, &kgo.Record{Topic: request.Topic, Value: value}).FirstErr(); err != nil {
			return nil, err
		}
	}
	return map[string]any{"id": made.ID, "version": made.Version}, nil
}

// srRead reads Count records, and the schema of each by its id.
func srRead(ctx context.Context, request *Request) (any, error) {
	client, err := sr.NewClient(sr.URLs(request.URL))
	if err != nil {
		return nil, err
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(request.Bootstrap), kgo.ConsumeTopics(request.Topic))
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	objects, schemas := []json.RawMessage{}, []string{}
	for len(objects) < request.Count {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return nil, err
		}
		for _, record := range fetches.Records() {
			id, rest, err := (&sr.ConfluentHeader{}).DecodeID(record.Value)
			if err != nil {
				return nil, err
			}
			schema, err := client.SchemaByID(ctx, id)
			if err != nil {
				return nil, err
			}
			objects, schemas = append(objects, rest), append(schemas, schema.Type.String())
		}
	}
	return map[string]any{"objects": objects, "types": schemas}, nil
}

// srTour uses what a console or a deployment would: settings, modes, checks, deletes; and says what it saw.
func srTour(ctx context.Context, request *Request) (any, error) {
	client, made, err := registered(ctx, request)
	if err != nil {
		return nil, err
	}
	seen := map[string]any{"version": made.Version}
	level := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, request.Subject)[0]
	if level.Err != nil {
		return nil, level.Err
	}
	seen["level"] = client.Compatibility(ctx, request.Subject)[0].Level.String()
	seen["default"] = client.Compatibility(ctx)[0].Level.String()
	checked, err := client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), request.Subject, -1, sr.Schema{Schema: request.Values[0], Type: made.Type})
	if err != nil {
		return nil, err
	}
	seen["compatible"], seen["messages"] = checked.Is, checked.Messages
	_, err = client.CreateSchema(ctx, request.Subject, sr.Schema{Schema: request.Values[0], Type: made.Type})
	seen["refused"] = codeOf(err)
	found, err := client.LookupSchema(ctx, request.Subject, sr.Schema{Schema: request.Schema, Type: made.Type})
	if err != nil {
		return nil, err
	}
	seen["found"] = found.ID == made.ID
	seen["mode"] = client.Mode(ctx)[0].Mode.String()
	if seen["types"], err = client.SupportedTypes(ctx); err != nil {
		return nil, err
	}
	if seen["deleted"], err = client.DeleteSubject(ctx, request.Subject, sr.SoftDelete); err != nil {
		return nil, err
	}
	_, err = client.SubjectVersions(ctx, request.Subject)
	seen["gone"] = codeOf(err)
	if _, err = client.DeleteSubject(ctx, request.Subject, sr.HardDelete); err != nil {
		return nil, err
	}
	_, err = client.SchemaByID(ctx, made.ID)
	seen["forgotten"] = codeOf(err)
	return seen, nil
}

func codeOf(err error) string {
	var refused *sr.ResponseError
	if errors.As(err, &refused) {
		return fmt.Sprint(refused.ErrorCode)
	}
	return fmt.Sprint(err)
}
