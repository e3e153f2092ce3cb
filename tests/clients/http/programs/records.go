// Writes a record and reads it: records.go BASE TOPIC
package main

import (
	"io"
	"net/http"
	"os"
	"strings"
)

func show(answer *http.Response, err error) {
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	io.Copy(os.Stdout, answer.Body)
	os.Stdout.WriteString("\n")
}

func main() {
	records := os.Args[1] + "/api/v1/topics/" + os.Args[2] + "/records"
	body := `{"records":[{"key":"go","value":{"from":"go","n":9223372036854775807}}]}`
	show(http.Post(records, "application/json", strings.NewReader(body)))
	show(http.Get(records + "?from=earliest&wait=5000"))
}
