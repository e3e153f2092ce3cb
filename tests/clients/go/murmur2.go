// The hash by which Kafka's clients choose a partition for a key: murmur2, 32 bits, with Kafka's seed.

package main

import "encoding/binary"

func partitionOf(key []byte, partitions int32) int32 {
	const seed, m = 0x9747b28c, 0x5bd1e995
	hashed := seed ^ uint32(len(key))
	for len(key) >= 4 {
		k := binary.LittleEndian.Uint32(key) * m
		k = (k ^ k>>24) * m
		hashed = hashed*m ^ k
		key = key[4:]
	}
	if len(key) > 0 {
		for at, one := range key {
			hashed ^= uint32(one) << (8 * at)
		}
		hashed *= m
	}
	hashed = (hashed ^ hashed>>13) * m
	hashed ^= hashed >> 15
	return int32(hashed&0x7fffffff) % partitions
}
