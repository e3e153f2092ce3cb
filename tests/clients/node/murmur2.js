// The hash by which Kafka's clients choose a partition for a key: murmur2, 32 bits, with Kafka's seed.

const SEED = 0x9747b28c;
const M = 0x5bd1e995;

function murmur2(data) {
  let hashed = SEED ^ data.length;
  const whole = data.length - (data.length % 4);
  for (let at = 0; at < whole; at += 4) {
    let k = Math.imul(data.readInt32LE(at), M);
    k = Math.imul(k ^ (k >>> 24), M);
    hashed = Math.imul(hashed, M) ^ k;
  }
  if (data.length > whole) {
    hashed ^= data.readUIntLE(whole, data.length - whole);
    hashed = Math.imul(hashed, M);
  }
  hashed = Math.imul(hashed ^ (hashed >>> 13), M);
  return hashed ^ (hashed >>> 15);
}

export const partitionOf = (key, partitions) => (murmur2(key) & 0x7fffffff) % partitions;
