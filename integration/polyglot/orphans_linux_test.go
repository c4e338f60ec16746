// SPDX-License-Identifier: Apache-2.0

package polyglot

import "syscall"

const prSetChildSubreaper = 36 // of prctl(2)

// Whoever loses its parent in these tests becomes a child of this process, which waits for nobody: so it
// is in a container whose first process is a program like any other.
func init() {
	if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); err != 0 {
		panic(err)
	}
}
