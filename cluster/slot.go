// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strconv"
	"strings"
	"sync"
)

// Slots is the number of hash slots of a Redis Cluster: "The cluster's key space is split into
// 16384 slots" (Redis Cluster specification, "Key distribution model").
const Slots = 16384

// Slot returns the hash slot of a key, 0 to 16383: CRC16(HashTag(key)) mod 16384, as CLUSTER
// KEYSLOT answers it. A key is any sequence of bytes. Safe for concurrent use; does not allocate.
func Slot(key string) uint16 {
	return crc16(HashTag(key)) % Slots
}

// HashTag returns the part of a key that is hashed. "If the key contains a {...} pattern, only the
// substring between { and } is hashed": from the first { to the first } after it, if there is at
// least one byte between them. Otherwise it is the whole key (Redis Cluster specification, "Hash
// tags").
func HashTag(key string) string {
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return key
	}
	size := strings.IndexByte(key[open+1:], '}')
	if size < 1 {
		return key
	}
	return key[open+1 : open+1+size]
}

// TagFor returns a text that hashes to a slot: Slot("{"+TagFor(slot)+"}anything") == slot. It has 1
// to 4 letters and digits, the same ones for the same slot in every process and every version of
// this package, so that keys and channels may be built with it. A slot of 16384 or more is taken
// modulo 16384.
//
// The first call builds a table of 64 KiB, which takes some milliseconds. Safe for concurrent use.
func TagFor(slot uint16) string {
	return strconv.FormatUint(uint64(tags()[slot%Slots]), tagBase)
}

const tagBase = 36

// tags holds, for every slot, the smallest number whose text in base 36 hashes to it. A number
// takes 4 bytes, where a string would take 16 and its text.
var tags = sync.OnceValue(func() *[Slots]uint32 {
	var table [Slots]uint32
	var found [Slots]bool
	for n, missing := uint32(0), Slots; missing > 0; n++ {
		slot := crc16(strconv.FormatUint(uint64(n), tagBase)) % Slots
		if !found[slot] {
			table[slot], found[slot] = n, true
			missing--
		}
	}
	return &table
})

// crc16 is the CRC16-CCITT variant of the Redis Cluster specification, appendix A: "Name: XMODEM,
// width 16 bits, poly 1021, initialization 0000, reflect input and output false, xor 0000, output
// for '123456789' 31C3".
func crc16(text string) uint16 {
	var crc uint16
	for i := 0; i < len(text); i++ {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^text[i]]
	}
	return crc
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
