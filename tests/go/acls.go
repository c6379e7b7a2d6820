package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ACL is an entry: type, name, pattern, principal, host, operation, permission. In a filter null matches everything.
type ACL [7]*string

// builder makes kadm's form of an entry. Without a permission it matches entries of both.
func (a ACL) builder() (*kadm.ACLBuilder, error) {
	b := kadm.NewACLs()
	name := given(a[1])
	switch kind := a[0]; {
	case kind == nil:
		b.AnyResource(name...)
	case *kind == "TOPIC":
		b.Topics(name...)
	case *kind == "GROUP":
		b.Groups(name...)
	case *kind == "TRANSACTIONAL_ID":
		b.TransactionalIDs(name...)
	default:
		return nil, fmt.Errorf("no resource type %q", *kind)
	}
	pattern, err := kmsg.ParseACLResourcePatternType(or(a[2], "ANY"))
	if err != nil {
		return nil, err
	}
	b.ResourcePatternType(pattern)
	if permission := or(a[6], "ALLOW"); permission == "ALLOW" {
		b.Allow(given(a[3])...).AllowHosts(given(a[4])...)
	}
	if permission := or(a[6], "DENY"); permission == "DENY" {
		b.Deny(given(a[3])...).DenyHosts(given(a[4])...)
	}
	operation, err := kmsg.ParseACLOperation(or(a[5], "ANY"))
	return b.Operations(operation), err
}

func given(text *string) []string {
	if text == nil {
		return nil
	}
	return []string{*text}
}

func or(text *string, other string) string {
	if text == nil {
		return other
	}
	return *text
}

func administering(request *Request, work func(*kadm.Client) error) error {
	opts, err := seeds(request)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	return work(kadm.NewClient(client))
}

func createACLs(ctx context.Context, request *Request) (any, error) {
	return empty, administering(request, func(admin *kadm.Client) error {
		for _, each := range request.ACLs {
			builder, err := each.builder()
			if err != nil {
				return err
			}
			results, err := admin.CreateACLs(ctx, builder)
			for _, result := range results {
				err = errors.Join(err, result.Err)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func describeACLs(ctx context.Context, request *Request) (any, error) {
	found := [][7]string{}
	err := administering(request, func(admin *kadm.Client) error {
		builder, err := request.Filter.builder()
		if err != nil {
			return err
		}
		results, err := admin.DescribeACLs(ctx, builder)
		for _, result := range results {
			err = errors.Join(err, result.Err)
			for _, each := range result.Described {
				found = append(found, texts(each))
			}
		}
		return err
	})
	return found, err
}

func deleteACLs(ctx context.Context, request *Request) (any, error) {
	gone := [][7]string{}
	err := administering(request, func(admin *kadm.Client) error {
		builder, err := request.Filter.builder()
		if err != nil {
			return err
		}
		results, err := admin.DeleteACLs(ctx, builder)
		for _, result := range results {
			err = errors.Join(err, result.Err)
			for _, each := range result.Deleted {
				err = errors.Join(err, each.Err)
				gone = append(gone, texts(kadm.DescribedACL{
					Principal: each.Principal, Host: each.Host, Type: each.Type, Name: each.Name,
					Pattern: each.Pattern, Operation: each.Operation, Permission: each.Permission,
				}))
			}
		}
		return err
	})
	return gone, err
}

func texts(a kadm.DescribedACL) [7]string {
	return [7]string{
		a.Type.String(), a.Name, a.Pattern.String(), a.Principal, a.Host, a.Operation.String(), a.Permission.String(),
	}
}
