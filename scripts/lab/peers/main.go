// Go's net/http, a goroutine and a ticker per client. Takes the port, the ping interval (ms, 0 for none), and the files of a certificate
// and its key for TLS.
package main

import (
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	interval, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/{$}", func(response http.ResponseWriter, request *http.Request) {
		control := http.NewResponseController(response)
		write := func(text string) bool {
			if _, err := response.Write([]byte(text)); err != nil {
				return false
			}
			return control.Flush() == nil
		}
		if !write("Welcome!") {
			return
		}
		if interval == 0 {
			<-request.Context().Done()
			return
		}
		ticker := time.NewTicker(time.Duration(interval) * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if !write("ping") {
					return
				}
			case <-request.Context().Done():
				return
			}
		}
	})
	address := "127.0.0.1:" + os.Args[1]
	if len(os.Args) > 4 {
		log.Fatal(http.ListenAndServeTLS(address, os.Args[3], os.Args[4], nil))
	}
	log.Fatal(http.ListenAndServe(address, nil))
}
