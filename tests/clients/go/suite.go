// Runs cases one after the other, says how each went, and counts: the Go twin of the other suites' runners.

package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	caseLimit       = 180 * time.Second
	eventuallyLimit = 60 * time.Second
	askAgain        = 50 * time.Millisecond
)

type body func(ctx context.Context, bootstrap string) error

type testCase struct {
	part, name string
	run        body
}

var (
	runID   = fmt.Sprintf("%x", time.Now().UnixMilli())
	counter int
)

// uniqueName gives a name that nobody has used yet.
func uniqueName(stem string) string {
	counter++
	return fmt.Sprintf("%s-%s-%d", stem, runID, counter)
}

// eventually asks until the answer is yes.
func eventually(ctx context.Context, what string, holds func() (bool, error)) error {
	limit, cancel := context.WithTimeout(ctx, eventuallyLimit)
	defer cancel()
	ticker := time.NewTicker(askAgain)
	defer ticker.Stop()
	for {
		yes, err := holds()
		if err != nil || yes {
			return err
		}
		select {
		case <-limit.Done():
			return fmt.Errorf("%s: not so after %s", what, eventuallyLimit)
		case <-ticker.C:
		}
	}
}

func equal[T comparable](expected, actual T, what string) error {
	if expected != actual {
		return fmt.Errorf("%s: expected %v, got %v", what, expected, actual)
	}
	return nil
}

func namesIn(path string) (map[string]bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	names := map[string]bool{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && line[0] != '#' {
			names[line] = true
		}
	}
	return names, lines.Err()
}

func runSuite(cases []testCase) int {
	bootstrap := flag.String("bootstrap", "127.0.0.1:9092", "a broker")
	only := flag.String("only", "all", "core, groups, configs, separated by commas, or all")
	allow := flag.String("allow", "", "a file of the cases that must pass; others are gaps")
	wanted := flag.String("case", "", "a part of a name")
	flag.String("log-dir", "", "not looked at by this suite")
	flag.Parse()
	var allowed map[string]bool
	passed, failed := 0, 0
	if *allow != "" {
		names, err := namesIn(*allow)
		if err != nil {
			fmt.Println(err)
			return 2
		}
		allowed = names
		known := map[string]bool{}
		for _, one := range cases {
			known[one.name] = true
		}
		for name := range allowed {
			if !known[name] {
				fmt.Printf("FAILED %s: the allow-list names a case that does not exist\n", name)
				failed++
			}
		}
	}
	for _, one := range cases {
		if *only != "all" && !strings.Contains(","+*only+",", ","+one.part+",") || !strings.Contains(one.name, *wanted) {
			continue
		}
		if allowed != nil && !allowed[one.name] {
			fmt.Printf("gap %s\n", one.name)
			continue
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), caseLimit)
		err := one.run(ctx, *bootstrap)
		cancel()
		millis := time.Since(begin).Milliseconds()
		if err == nil {
			passed++
			fmt.Printf("ok %s (%d ms)\n", one.name, millis)
		} else {
			failed++
			fmt.Printf("FAILED %s (%d ms): %v\n", one.name, millis, err)
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		return 1
	}
	return 0
}
