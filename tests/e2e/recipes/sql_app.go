// An application with database/sql; it does what rows.py says. Its further processes are started, not
// forked: "child" stands for the name of the file with JSON.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/ioutil"
	"os"
	"os/exec"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"ids"
)

const (
	before, children, threads, rows = 40, 3, 3, 40
	patience                        = 45 * time.Second
)

type order struct {
	ID    int64 `json:"id,string"`
	Total int64 `json:"total"`
}

var keys = ids.New("tcp", strings.TrimPrefix(os.Getenv("IDS_URL"), "redis://"))

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func insert(db *sql.DB, n int) {
	ctx := context.Background()
	for ; n > 0; n-- {
		id, err := keys.Next(ctx, "orders")
		must(err)
		_, err = db.ExecContext(ctx, "INSERT INTO orders (id, total) VALUES (?, ?)", id, 7)
		must(err)
	}
}

func half(db *sql.DB) {
	done := make(chan bool)
	for t := 0; t < threads; t++ {
		go func() { insert(db, rows); done <- true }()
	}
	for t := 0; t < threads; t++ {
		<-done
	}
}

func halves(db *sql.DB, sign string) {
	half(db)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(sign); err == nil {
			break
		}
	}
	half(db)
}

func all(db *sql.DB) []order {
	found, err := db.Query("SELECT id, total FROM orders")
	must(err)
	defer found.Close()
	orders := []order{}
	for found.Next() {
		var o order
		must(found.Scan(&o.ID, &o.Total))
		orders = append(orders, o)
	}
	return orders
}

func write(db *sql.DB, database, sign, path string) {
	_, err := db.Exec("CREATE TABLE orders (id BIGINT PRIMARY KEY, total INTEGER NOT NULL)")
	must(err)
	insert(db, before)
	started := []*exec.Cmd{}
	for n := 0; n < children; n++ {
		c := exec.Command(os.Args[0], database, sign, "child")
		c.Stderr = os.Stderr
		must(c.Start())
		started = append(started, c)
	}
	halves(db, sign)
	for _, c := range started {
		must(c.Wait())
	}
	text, err := json.Marshal(all(db))
	must(err)
	must(ioutil.WriteFile(path, text, 0o644))
}

func answer() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if id, err := keys.Next(context.Background(), "orders"); err != nil {
			fmt.Println("error", err)
		} else {
			fmt.Println("id", id)
		}
	}
}

func main() {
	if len(os.Args) == 1 {
		answer()
		return
	}
	database, sign, path := os.Args[1], os.Args[2], os.Args[3]
	db, err := sql.Open("sqlite3", database+"?_busy_timeout=20000")
	must(err)
	if path == "child" {
		halves(db, sign)
		return
	}
	write(db, database, sign, path)
}
