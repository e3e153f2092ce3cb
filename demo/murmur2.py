"""Where Kafka's clients put a key: murmur2, 32 bits, with Kafka's seed, without the sign, modulo the partitions."""

SEED, FACTOR, MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def murmur2(data):
    hashed = SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * FACTOR & MASK
        word = (word ^ word >> 24) * FACTOR & MASK
        hashed = hashed * FACTOR & MASK ^ word
    if whole < len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * FACTOR & MASK
    hashed = (hashed ^ hashed >> 13) * FACTOR & MASK
    return hashed ^ hashed >> 15


def partition_of(key, partitions):
    return (murmur2(key) & 0x7FFFFFFF) % partitions
