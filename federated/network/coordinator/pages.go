package coordinator

import (
	"encoding/json"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// handler serves the pages: /healthz and /metrics to everybody, /status to members and to this machine.
func (c *Coordinator) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", c.health)
	mux.Handle("GET /metrics", promhttp.HandlerFor(c.register(), promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /status", c.status)
	var handler http.Handler
	if c.guests != nil {
		handler = c.guests.Handler()
	}
	if handler != nil {
		mux.Handle("/v1/", handler)
	} else {
		mux.HandleFunc("/v1/fleet/", c.noFleetHere)
	}
	return mux
}

// health says whether the coordinator does its work: a run that failed is not healthy.
func (c *Coordinator) health(w http.ResponseWriter, _ *http.Request) {
	status := c.federation.Status()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if status.Phase == "failed" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write([]byte(status.Phase + "\n")) // whoever hung up does not need it
}

// status is how things stand, with the members' names.
func (c *Coordinator) status(w http.ResponseWriter, r *http.Request) {
	if !local(r) {
		if _, err := c.registrar.Member(r.Context(), *r.TLS); err != nil {
			http.Error(w, "a member's certificate is needed", http.StatusForbidden)
			return
		}
	}
	text, err := json.Marshal(c.federation.Status())
	if err != nil {
		http.Error(w, "cannot be written as JSON", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}

// local reports whether a request comes from this machine.
func local(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && net.ParseIP(host).IsLoopback()
}
