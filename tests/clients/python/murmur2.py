"""The hash by which Kafka's clients choose a partition for a key: murmur2, 32 bits, with Kafka's seed."""

SEED = 0x9747B28C
M = 0x5BD1E995
MASK = 0xFFFFFFFF


def murmur2(data):
    length = len(data)
    hashed = SEED ^ length
    whole = length - length % 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little")
        k = k * M & MASK
        k ^= k >> 24
        k = k * M & MASK
        hashed = (hashed * M & MASK) ^ k
    if length > whole:
        hashed ^= int.from_bytes(data[whole:], "little")
        hashed = hashed * M & MASK
    hashed ^= hashed >> 13
    hashed = hashed * M & MASK
    return hashed ^ hashed >> 15


def partition_of(key, partitions):
    return (murmur2(key) & 0x7FFFFFFF) % partitions
