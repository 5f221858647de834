// Command server is what the benchmarks' clients take for S3.
//
// It passes requests on to another server, or answers from memory when no other is named, so that
// it never is the bottleneck. Each response waits for a delay first, and each request is counted by
// its S3 operation, apart for each address that it listens on:
//
//	server -to http://127.0.0.1:8333 -listen cluster=127.0.0.1:9001 -listen pipeline=127.0.0.1:9002
//
// Below /-/ it talks to the benchmark: GET /-/counts, DELETE /-/counts, PUT /-/delay?ms=20.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// A proxy keeps as many connections as all clients together have requests in flight.
const connections = 1024

func main() {
	var listen listeners
	to := flag.String("to", "", "URL of the server that answers; memory if it is not given")
	flag.Var(&listen, "listen", "NAME=HOST:PORT, repeatable")
	flag.Parse()
	log.SetFlags(0)
	s3, err := answering(*to)
	if err != nil || len(listen) == 0 {
		log.Fatalf("server: no address to listen on, or -to is no URL (%v)", err)
	}
	bench := &bench{counts: map[string]map[string]int{}}
	failed := make(chan error)
	for _, one := range listen {
		handler := bench.measured(one.name, unnotified(s3))
		go func() { failed <- http.ListenAndServe(one.address, handler) }()
	}
	log.Fatalf("server: %v", <-failed)
}

func answering(to string) (http.Handler, error) {
	if to == "" {
		quiet := gofakes3.WithLogger(gofakes3.DiscardLog())
		return gofakes3.New(s3mem.New(), quiet).Server(), nil
	}
	target, err := url.Parse(to)
	transport := &http.Transport{
		MaxIdleConns: connections, MaxIdleConnsPerHost: connections, DisableCompression: true,
	}
	rewrite := func(request *httputil.ProxyRequest) {
		request.SetURL(target)
		request.Out.Host = request.In.Host // It is signed.
		request.Out.Header.Del("Expect")   // It was answered here.
	}
	return &httputil.ReverseProxy{Rewrite: rewrite, Transport: transport}, err
}

// unnotified answers like S3 to a writer who may not read the bucket's notifications: the servers
// have none, and the writers would take that for a bucket without a pipeline.
func unnotified(s3 http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if !request.URL.Query().Has("notification") {
			s3.ServeHTTP(response, request)
			return
		}
		response.Header().Set("Content-Type", "application/xml")
		response.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(response, "<Error><Code>AccessDenied</Code></Error>")
	})
}

// bench is what all addresses share: the delay, and the counts by name and operation.
type bench struct {
	delay  atomic.Int64
	mutex  sync.Mutex
	counts map[string]map[string]int
}

func (b *bench) measured(name string, s3 http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, "/-/") {
			b.control(response, request)
			return
		}
		b.count(name, operation(request))
		late := &late{ResponseWriter: response, delay: time.Duration(b.delay.Load())}
		s3.ServeHTTP(late, request)
		late.wait() // if the response has no body
	})
}

func (b *bench) count(name, operation string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.counts[name] == nil {
		b.counts[name] = map[string]int{}
	}
	b.counts[name][operation]++
}

func (b *bench) control(response http.ResponseWriter, request *http.Request) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch request.Method + " " + request.URL.Path {
	case "GET /-/counts":
		_ = json.NewEncoder(response).Encode(b.counts)
	case "DELETE /-/counts":
		b.counts = map[string]map[string]int{}
	case "PUT /-/delay":
		wait, err := strconv.Atoi(request.URL.Query().Get("ms"))
		if err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
		}
		b.delay.Store(int64(time.Duration(wait) * time.Millisecond))
	default:
		http.NotFound(response, request)
	}
}

// late waits once before the first byte of a response, as a server far away would.
type late struct {
	http.ResponseWriter
	delay time.Duration
}

func (l *late) WriteHeader(status int) {
	l.wait()
	l.ResponseWriter.WriteHeader(status)
}

func (l *late) Write(body []byte) (int, error) {
	l.wait()
	return l.ResponseWriter.Write(body)
}

// ReadFrom keeps a large body's copy in the kernel.
func (l *late) ReadFrom(body io.Reader) (int64, error) {
	l.wait()
	return io.Copy(l.ResponseWriter, body)
}

func (l *late) wait() {
	time.Sleep(l.delay)
	l.delay = 0
}

// operation is the S3 API's name of a request, by its method, parameters and headers.
func operation(request *http.Request) string {
	query := request.URL.Query()
	_, object, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
	copied := request.Header.Get("X-Amz-Copy-Source") != ""
	switch {
	case query.Has("uploadId"):
		part := map[bool]string{false: "UploadPart", true: "UploadPartCopy"}[copied]
		return map[string]string{
			"PUT": part, "POST": "CompleteMultipartUpload", "DELETE": "AbortMultipartUpload",
			"GET": "ListParts",
		}[request.Method]
	case query.Has("uploads"):
		return map[string]string{
			"POST": "CreateMultipartUpload", "GET": "ListMultipartUploads",
		}[request.Method]
	case query.Has("delete"):
		return "DeleteObjects"
	case object == "" && request.Method == "GET" && !anyOf(query, "notification", "versioning"):
		return "ListObjects"
	case object == "":
		return "other of the bucket"
	case copied:
		return "CopyObject"
	}
	method := request.Method
	return method[:1] + strings.ToLower(method[1:]) + "Object"
}

func anyOf(query url.Values, names ...string) bool {
	for _, name := range names {
		if query.Has(name) {
			return true
		}
	}
	return false
}

type listener struct{ name, address string }

type listeners []listener

func (l *listeners) String() string { return fmt.Sprint(*l) }

func (l *listeners) Set(text string) error {
	name, address, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("%q is not NAME=HOST:PORT", text)
	}
	*l = append(*l, listener{name, address})
	return nil
}
