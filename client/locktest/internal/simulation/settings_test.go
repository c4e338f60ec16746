package simulation_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// What the environment says, or what is usual.

func number(t *testing.T, variable string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

func length(t *testing.T, variable string, usual time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return d
}

// processes is how many play at once.
func processes(t *testing.T) int {
	t.Helper()
	return int(number(t, "HOLDFAST_PROCESSES", uint64(runtime.NumCPU())))
}
