// franz-go against a bootstrap server.

package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	os.Exit(runSuite(cases()))
}

func cases() []testCase {
	var all []testCase
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for _, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		all = append(all, testCase{"core", "franz_records_arrive_compressed_by_" + name, codec(codecs[name])})
	}
	return append(all,
		testCase{"core", "franz_records_arrive_with_acks_0", acks(kgo.NoAck())},
		testCase{"core", "franz_records_arrive_with_acks_1", acks(kgo.LeaderAck())},
		testCase{"core", "franz_idempotent_producer_gets_consecutive_offsets", idempotent},
		testCase{"core", "franz_keys_headers_and_nulls_arrive", headersAndNulls},
		testCase{"core", "franz_maps_keys_like_java", murmur2},
		testCase{"core", "franz_lists_offsets", listOffsets},
		testCase{"core", "franz_describes_topics_and_cluster", describe},
		testCase{"groups", "franz_group_goes_on_where_it_committed", resume},
		testCase{"groups", "franz_members_share_partitions_cooperatively", share(kgo.CooperativeStickyBalancer())},
		testCase{"groups", "franz_members_share_partitions_by_range", share(kgo.RangeBalancer())},
		testCase{"groups", "franz_describes_and_deletes_a_group", describeGroup},
		testCase{"configs", "franz_adds_partitions_and_deletes_records", partitionsAndRecords},
		testCase{"configs", "franz_alters_and_describes_configs", alterConfigs},
	)
}

func client(bootstrap string, options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(bootstrap)}, options...)...)
}

// topic creates a topic each of whose partitions answers for itself.
func topic(ctx context.Context, bootstrap string, partitions int32) (string, *kadm.Client, error) {
	name := uniqueName("go")
	one, err := client(bootstrap)
	if err != nil {
		return "", nil, err
	}
	admin := kadm.NewClient(one)
	answer, err := admin.CreateTopic(ctx, partitions, 1, nil, name)
	if err == nil {
		err = answer.Err
	}
	if err != nil {
		return "", nil, err
	}
	err = eventually(ctx, name+" answers", func() (bool, error) {
		ends, err := admin.ListEndOffsets(ctx, name)
		return err == nil && ends.Error() == nil && len(ends[name]) == int(partitions), nil
	})
	return name, admin, err
}

// send produces the records and returns them as the broker has acknowledged them.
func send(ctx context.Context, bootstrap, to string, records []*kgo.Record, options ...kgo.Opt) error {
	one, err := client(bootstrap, append([]kgo.Opt{kgo.DefaultProduceTopic(to)}, options...)...)
	if err != nil {
		return err
	}
	defer one.Close()
	return one.ProduceSync(ctx, records...).FirstErr()
}

func take(ctx context.Context, one *kgo.Client, count int) ([]*kgo.Record, error) {
	var records []*kgo.Record
	for len(records) < count {
		fetches := one.PollRecords(ctx, count-len(records))
		if err := fetches.Err0(); err != nil {
			return nil, err
		}
		for _, failed := range fetches.Errors() {
			return nil, failed.Err
		}
		records = append(records, fetches.Records()...)
	}
	return records, nil
}

func read(ctx context.Context, bootstrap, from string, count int) ([]*kgo.Record, error) {
	one, err := client(bootstrap, kgo.ConsumeTopics(from), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer one.Close()
	return take(ctx, one, count)
}

func numbered(count int) []*kgo.Record {
	var records []*kgo.Record
	for number := range count {
		records = append(records, &kgo.Record{Value: fmt.Appendf(nil, "v%d %s", number, strings.Repeat("ab", number%50))})
	}
	return records
}

func sameValues(sent, read []*kgo.Record) error {
	for at := range sent {
		if err := equal(string(sent[at].Value), string(read[at].Value), fmt.Sprintf("value %d", at)); err != nil {
			return err
		}
	}
	return equal(len(sent), len(read), "records")
}

func codec(codec kgo.CompressionCodec) body {
	return func(ctx context.Context, bootstrap string) error {
		return roundTrip(ctx, bootstrap, kgo.ProducerBatchCompression(codec))
	}
}

func acks(acks kgo.Acks) body {
	return func(ctx context.Context, bootstrap string) error {
		return roundTrip(ctx, bootstrap, kgo.RequiredAcks(acks), kgo.DisableIdempotentWrite())
	}
}

func roundTrip(ctx context.Context, bootstrap string, options ...kgo.Opt) error {
	to, admin, err := topic(ctx, bootstrap, 1)
	if err != nil {
		return err
	}
	defer admin.Close()
	sent := numbered(1000)
	if err := send(ctx, bootstrap, to, sent, options...); err != nil {
		return err
	}
	found, err := read(ctx, bootstrap, to, len(sent))
	if err != nil {
		return err
	}
	return sameValues(sent, found)
}

func idempotent(ctx context.Context, bootstrap string) error {
	to, admin, err := topic(ctx, bootstrap, 1)
	if err != nil {
		return err
	}
	defer admin.Close()
	sent := numbered(2000)
	if err := send(ctx, bootstrap, to, sent, kgo.ProducerBatchMaxBytes(1024), kgo.ProducerLinger(0)); err != nil {
		return err
	}
	for at, record := range sent {
		if err := equal(int64(at), record.Offset, "offset"); err != nil {
			return err
		}
	}
	return nil
}

func headersAndNulls(ctx context.Context, bootstrap string) error {
	to, admin, err := topic(ctx, bootstrap, 1)
	if err != nil {
		return err
	}
	defer admin.Close()
	headers := []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a", Value: nil}, {Key: "b", Value: []byte{}}}
	sent := []*kgo.Record{
		{Key: []byte("k"), Value: []byte("v"), Headers: headers},
		{Key: nil, Value: []byte{}},
		{Key: []byte{}, Value: nil},
	}
	if err := send(ctx, bootstrap, to, sent); err != nil {
		return err
	}
	found, err := read(ctx, bootstrap, to, len(sent))
	if err != nil {
		return err
	}
	for at, record := range sent {
		if err := equal(fmt.Sprintf("%#v %#v %#v", record.Key, record.Value, record.Headers),
			fmt.Sprintf("%#v %#v %#v", found[at].Key, found[at].Value, found[at].Headers), "record"); err != nil {
			return err
		}
	}
	return nil
}

// murmur2 compares with partitions that the Java client chooses; the other suites compute them.
func murmur2(ctx context.Context, bootstrap string) error {
	to, admin, err := topic(ctx, bootstrap, 7)
	if err != nil {
		return err
	}
	defer admin.Close()
	var sent []*kgo.Record
	for number := range 200 {
		sent = append(sent, &kgo.Record{Key: fmt.Appendf(nil, "key-%d", number), Value: []byte("v")})
	}
	if err := send(ctx, bootstrap, to, sent, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil))); err != nil {
		return err
	}
	for _, record := range sent {
		if err := equal(partitionOf(record.Key, 7), record.Partition, string(record.Key)); err != nil {
			return err
		}
	}
	return nil
}

func listOffsets(ctx context.Context, bootstrap string) error {
	to, admin, err := topic(ctx, bootstrap, 1)
	if err != nil {
		return err
	}
	defer admin.Close()
	base := time.Now().UnixMilli() - 100_000
	for _, delta := range []int64{0, 1000, 500} {
		record := &kgo.Record{Value: []byte("v"), Timestamp: time.UnixMilli(base + delta)}
		if err := send(ctx, bootstrap, to, []*kgo.Record{record}); err != nil {
			return err
		}
	}
	for timestamp, offset := range map[int64]int64{1: 0, base + 1: 1, base + 1001: 3} {
		found, err := admin.ListOffsetsAfterMilli(ctx, timestamp, to)
		if err != nil {
			return err
		}
		if err := equal(offset, found[to][0].Offset, fmt.Sprintf("offset at %d", timestamp)); err != nil {
			return err
		}
	}
	largest, err := admin.ListMaxTimestampOffsets(ctx, to)
	if err != nil {
		return err
	}
	return equal(1, largest[to][0].Offset, "offset of the largest timestamp")
}

func describe(ctx context.Context, bootstrap string) error {
	to, admin, err := topic(ctx, bootstrap, 3)
	if err != nil {
		return err
	}
	defer admin.Close()
	metadata, err := admin.Metadata(ctx, to)
	if err != nil {
		return err
	}
	if err := equal(3, len(metadata.Topics[to].Partitions), "partitions"); err != nil {
		return err
	}
	if err := equal(1, len(metadata.Brokers), "brokers"); err != nil {
		return err
	}
	if _, err := admin.DeleteTopic(ctx, to); err != nil {
		return err
	}
	return eventually(ctx, to+" is gone", func() (bool, error) {
		topics, err := admin.ListTopics(ctx)
		return !topics.Has(to), err
	})
}

func member(bootstrap, group, of string, balancer kgo.GroupBalancer) (*kgo.Client, error) {
	return client(bootstrap, kgo.ConsumerGroup(group), kgo.ConsumeTopics(of), kgo.Balancers(balancer),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(300*time.Millisecond), kgo.FetchMaxWait(200*time.Millisecond))
}

func resume(ctx context.Context, bootstrap string) error {
	to, admin, err := topic(ctx, bootstrap, 1)
	if err != nil {
		return err
	}
	defer admin.Close()
	group := uniqueName("g")
	sent := numbered(10)
	if err := send(ctx, bootstrap, to, sent); err != nil {
		return err
	}
	for _, part := range [][]*kgo.Record{sent[:6], sent[6:]} {
		one, err := member(bootstrap, group, to, kgo.RangeBalancer())
		if err != nil {
			return err
		}
		found, err := take(ctx, one, len(part))
		if err == nil {
			err = sameValues(part, found)
		}
		if err == nil {
			err = one.CommitRecords(ctx, found...)
		}
		one.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// counts says how many partitions each member of the group has, smallest first, once the group is stable.
func counts(ctx context.Context, admin *kadm.Client, group, of string) (string, error) {
	described, err := admin.DescribeGroups(ctx, group)
	if err != nil {
		return "", err
	}
	if described[group].State != "Stable" {
		return described[group].State, nil
	}
	var owned []int
	for _, one := range described[group].Members {
		partitions := 0
		if assigned, ok := one.Assigned.AsConsumer(); ok {
			for _, part := range assigned.Topics {
				if part.Topic == of {
					partitions += len(part.Partitions)
				}
			}
		}
		owned = append(owned, partitions)
	}
	sort.Ints(owned)
	return fmt.Sprint(owned), nil
}

func share(balancer kgo.GroupBalancer) body {
	return func(ctx context.Context, bootstrap string) error {
		to, admin, err := topic(ctx, bootstrap, 4)
		if err != nil {
			return err
		}
		defer admin.Close()
		group := uniqueName("g")
		shape := func(wanted string) error {
			return eventually(ctx, wanted, func() (bool, error) {
				found, err := counts(ctx, admin, group, to)
				return found == wanted, err
			})
		}
		first, err := member(bootstrap, group, to, balancer)
		if err != nil {
			return err
		}
		defer first.Close()
		second, err := member(bootstrap, group, to, balancer)
		if err != nil {
			return err
		}
		if err := shape("[2 2]"); err != nil {
			second.Close()
			return err
		}
		second.Close()
		return shape("[4]")
	}
}

func describeGroup(ctx context.Context, bootstrap string) error {
	to, admin, err := topic(ctx, bootstrap, 1)
	if err != nil {
		return err
	}
	defer admin.Close()
	group := uniqueName("g")
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: to, Partition: 0, At: 7, LeaderEpoch: -1, Metadata: "a note"})
	if err := admin.CommitAllOffsets(ctx, group, offsets); err != nil {
		return err
	}
	found, err := admin.FetchOffsets(ctx, group)
	if err != nil {
		return err
	}
	committed, _ := found.Lookup(to, 0)
	if err := equal("7 a note", fmt.Sprint(committed.At, " ", committed.Metadata), "committed"); err != nil {
		return err
	}
	listed, err := admin.ListGroups(ctx)
	if err != nil {
		return err
	}
	if err := equal("Empty", listed[group].State, "listed state"); err != nil {
		return err
	}
	_, err = admin.DeleteGroup(ctx, group)
	return err
}

func partitionsAndRecords(ctx context.Context, bootstrap string) error {
	to, admin, err := topic(ctx, bootstrap, 1)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := send(ctx, bootstrap, to, numbered(5)); err != nil {
		return err
	}
	added, err := admin.UpdatePartitions(ctx, 3, to)
	if err == nil {
		err = added.Error()
	}
	if err != nil {
		return err
	}
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: to, Partition: 0, At: 3})
	deleted, err := admin.DeleteRecords(ctx, offsets)
	if err != nil {
		return err
	}
	return equal(3, deleted[to][0].LowWatermark, "low watermark")
}

func alterConfigs(ctx context.Context, bootstrap string) error {
	to, admin, err := topic(ctx, bootstrap, 1)
	if err != nil {
		return err
	}
	defer admin.Close()
	value := "3600000"
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}
	altered, err := admin.AlterTopicConfigs(ctx, change, to)
	if err != nil {
		return err
	}
	if altered[0].Err != nil {
		return altered[0].Err
	}
	return eventually(ctx, "retention.ms is "+value, func() (bool, error) {
		described, err := admin.DescribeTopicConfigs(ctx, to)
		if err != nil {
			return false, err
		}
		for _, config := range described[0].Configs {
			if config.Key == "retention.ms" {
				return config.MaybeValue() == value, nil
			}
		}
		return false, fmt.Errorf("retention.ms is not described")
	})
}
