// kafkajs against a bootstrap server.

import assert from "node:assert/strict";
import kafkajs from "kafkajs";
import { partitionOf } from "./murmur2.js";
import { add, eventually, main, name } from "./suite.js";

const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel, Partitioners } = kafkajs;

const client = (bootstrap) =>
  new Kafka({ clientId: "node-suite", brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 20, maxRetryTime: 1000 } });

async function withAdmin(bootstrap, body) {
  const admin = client(bootstrap).admin();
  await admin.connect();
  try {
    return await body(admin);
  } finally {
    await admin.disconnect();
  }
}

/** A new topic each of whose partitions answers for itself. */
async function topic(bootstrap, numPartitions = 1) {
  const fresh = name("js");
  await withAdmin(bootstrap, async (admin) => {
    await admin.createTopics({ topics: [{ topic: fresh, numPartitions }], waitForLeaders: true });
    await eventually(`${fresh} answers`, async () => (await offsets(admin, fresh)).length === numPartitions);
  });
  return fresh;
}

/** A topic's offsets; none while one of its partitions does not lead yet. */
async function offsets(admin, of) {
  try {
    return await admin.fetchTopicOffsets(of);
  } catch (error) {
    if (error.retriable) return [];
    throw error;
  }
}

async function send(bootstrap, to, messages, options = {}) {
  const { acks, compression, ...settings } = options;
  const producer = client(bootstrap).producer({ createPartitioner: Partitioners.DefaultPartitioner, ...settings });
  await producer.connect();
  try {
    return await producer.send({ topic: to, messages, acks, compression });
  } finally {
    await producer.disconnect();
  }
}

/** Reads in a group until `count` messages have come, then leaves it with what it has read committed. */
async function take(bootstrap, groupId, from, count) {
  const consumer = client(bootstrap).consumer({ groupId, heartbeatInterval: 500, maxWaitTimeInMs: 200 });
  const messages = [];
  await consumer.connect();
  try {
    await consumer.subscribe({ topics: [from], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        if (messages.length >= count) return;
        messages.push({ partition, ...message });
        await consumer.commitOffsets([{ topic: from, partition, offset: String(BigInt(message.offset) + 1n) }]);
      },
    });
    await eventually(`${count} messages`, () => messages.length >= count);
  } finally {
    await consumer.disconnect();
  }
  return messages;
}

const text = (bytes) => (bytes === null ? null : bytes.toString());
const numbered = (count) => Array.from({ length: count }, (_, number) => ({ partition: 0, value: `v${number}` }));

for (const [codec, compression] of [["none", CompressionTypes.None], ["gzip", CompressionTypes.GZIP]]) {
  for (const idempotent of [false, true]) {
    add("groups", `kafkajs_records_arrive_${codec}${idempotent ? "_idempotent" : ""}`, async (bootstrap) => {
      const to = await topic(bootstrap);
      const messages = numbered(300);
      await send(bootstrap, to, messages, { compression, idempotent, acks: -1 });
      const read = await take(bootstrap, name("g"), to, 300);
      assert.deepEqual(read.map((message) => text(message.value)), messages.map((message) => message.value));
    });
  }
}

for (const acks of [0, 1, -1]) {
  add("core", `kafkajs_writes_with_acks_${acks}`, async (bootstrap) => {
    const to = await topic(bootstrap);
    await send(bootstrap, to, numbered(50), { acks });
    await withAdmin(bootstrap, (admin) =>
      eventually("50 records are there", async () => (await admin.fetchTopicOffsets(to))[0].high === "50"),
    );
  });
}

add("core", "kafkajs_idempotent_producer_gets_consecutive_offsets", async (bootstrap) => {
  const to = await topic(bootstrap);
  const producer = client(bootstrap).producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  try {
    for (let number = 0; number < 30; number++) {
      const [answer] = await producer.send({ topic: to, messages: [{ partition: 0, value: `v${number}` }] });
      assert.equal(answer.baseOffset, String(number));
    }
  } finally {
    await producer.disconnect();
  }
});

add("core", "kafkajs_maps_keys_like_java", async (bootstrap) => {
  const to = await topic(bootstrap, 7);
  const producer = client(bootstrap).producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  try {
    for (let number = 0; number < 50; number++) {
      const key = `key-${number}`;
      const [answer] = await producer.send({ topic: to, messages: [{ key, value: "v" }] });
      assert.equal(answer.partition, partitionOf(Buffer.from(key), 7), key);
    }
  } finally {
    await producer.disconnect();
  }
});

add("core", "kafkajs_describes_topics_and_cluster", async (bootstrap) => {
  const to = await topic(bootstrap, 3);
  await withAdmin(bootstrap, async (admin) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [to] });
    assert.equal(topics[0].partitions.length, 3);
    const cluster = await admin.describeCluster();
    assert.equal(cluster.brokers.length, 1);
    assert.ok((await admin.listTopics()).includes(to));
    await admin.deleteTopics({ topics: [to] });
    await eventually("it is gone", async () => !(await admin.listTopics()).includes(to));
  });
});

add("core", "kafkajs_finds_offsets_by_time", async (bootstrap) => {
  const to = await topic(bootstrap);
  const base = Date.now() - 100_000;
  for (const delta of [0, 1000, 500]) {
    await send(bootstrap, to, [{ partition: 0, value: "v", timestamp: String(base + delta) }]);
  }
  await withAdmin(bootstrap, async (admin) => {
    for (const [timestamp, offset] of [[1, "0"], [base + 1, "1"], [base + 1001, "3"]]) {
      const [found] = await admin.fetchTopicOffsetsByTimestamp(to, timestamp);
      assert.equal(found.offset, offset, `at ${timestamp}`);
    }
  });
});

add("groups", "kafkajs_keys_headers_and_nulls_arrive", async (bootstrap) => {
  const to = await topic(bootstrap);
  await send(bootstrap, to, [{ partition: 0, key: "k", value: "v", headers: { a: "1", b: ["2", "3"] } }, { partition: 0, key: "k", value: null }]);
  const [first, second] = await take(bootstrap, name("g"), to, 2);
  assert.deepEqual([text(first.key), text(first.value), text(first.headers.a)], ["k", "v", "1"]);
  assert.deepEqual(first.headers.b.map(text), ["2", "3"]);
  assert.equal(second.value, null);
});

add("groups", "kafkajs_group_goes_on_where_it_committed", async (bootstrap) => {
  const to = await topic(bootstrap);
  const group = name("g");
  await send(bootstrap, to, numbered(10));
  const values = (messages) => messages.map((message) => text(message.value));
  assert.deepEqual(values(await take(bootstrap, group, to, 6)), numbered(6).map((message) => message.value));
  assert.deepEqual(values(await take(bootstrap, group, to, 4)), numbered(10).slice(6).map((message) => message.value));
});

add("groups", "kafkajs_members_share_partitions", async (bootstrap) => {
  const to = await topic(bootstrap, 4);
  const groupId = name("g");
  const owned = new Map();
  const join = async (who) => {
    const consumer = client(bootstrap).consumer({ groupId, heartbeatInterval: 300, maxWaitTimeInMs: 200 });
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => owned.set(who, payload.memberAssignment[to]?.length ?? 0));
    await consumer.connect();
    await consumer.subscribe({ topics: [to], fromBeginning: true });
    await consumer.run({ eachMessage: async () => {} });
    return consumer;
  };
  const counts = () => [...owned.values()].sort().join();
  const first = await join("first");
  const second = await join("second");
  try {
    await eventually("two each", () => counts() === "2,2");
    await second.disconnect();
    owned.delete("second");
    await eventually("the first has all", () => counts() === "4");
  } finally {
    await first.disconnect();
  }
});

add("groups", "kafkajs_describes_and_deletes_a_group", async (bootstrap) => {
  const to = await topic(bootstrap);
  const group = name("g");
  await send(bootstrap, to, numbered(1));
  await take(bootstrap, group, to, 1);
  await withAdmin(bootstrap, async (admin) => {
    const { groups } = await admin.describeGroups([group]);
    assert.equal(groups[0].state, "Empty");
    assert.ok((await admin.listGroups()).groups.some((one) => one.groupId === group));
    const [committed] = await admin.fetchOffsets({ groupId: group, topics: [to] });
    assert.equal(committed.partitions[0].offset, "1");
    await admin.deleteGroups([group]);
  });
});

add("configs", "kafkajs_describes_configs", async (bootstrap) => {
  const to = await topic(bootstrap);
  await withAdmin(bootstrap, async (admin) => {
    const described = async () => {
      const answer = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: ConfigResourceTypes.TOPIC, name: to, configNames: ["retention.ms"] }],
      });
      return answer.resources[0].configEntries[0].configValue;
    };
    assert.equal(await described(), "604800000");
  });
});

add("configs", "kafkajs_adds_partitions_and_deletes_records", async (bootstrap) => {
  const to = await topic(bootstrap);
  await send(bootstrap, to, numbered(5));
  await withAdmin(bootstrap, async (admin) => {
    await admin.createPartitions({ topicPartitions: [{ topic: to, count: 3 }] });
    await eventually("three", async () => (await admin.fetchTopicMetadata({ topics: [to] })).topics[0].partitions.length === 3);
    await eventually("each answers", async () => (await offsets(admin, to)).length === 3);
    await admin.deleteTopicRecords({ topic: to, partitions: [{ partition: 0, offset: "3" }] });
    await eventually("the log starts at 3", async () =>
      (await offsets(admin, to)).some((one) => one.partition === 0 && one.low === "3"),
    );
  });
});

await main();
