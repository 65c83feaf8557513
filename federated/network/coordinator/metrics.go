package coordinator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"grange/federated/network"
)

// metrics are what Prometheus is told. They name no members: whoever reaches the port may read them.
type metrics struct {
	updates *prometheus.CounterVec
	rounds  prometheus.Histogram
	hungUp  prometheus.Counter
	begun   time.Time
}

// newCounters are the metrics that are counted as things happen.
func newCounters() *metrics {
	return &metrics{
		updates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "grange_updates_total", Help: "Updates of members since the start of the process, by what became of them.",
		}, []string{"outcome"}),
		rounds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "grange_round_duration_seconds", Help: "How long rounds took.", Buckets: prometheus.ExponentialBuckets(0.25, 2, 18),
		}),
		hungUp: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "grange_connections_refused_total", Help: "Connections that were hung up on before they were any use.",
		}),
	}
}

var outcomes = map[network.Kind]string{
	network.Accepted: "accepted", network.Refused: "refused", network.Stale: "stale", network.Failed: "failed", network.Late: "late",
}

// note counts a note. Notes come one at a time.
func (m *metrics) note(n network.Note) {
	if outcome := outcomes[n.Kind]; outcome != "" {
		m.updates.WithLabelValues(outcome).Inc()
	}
	switch {
	case n.Kind == network.RoundBegun:
		m.begun = n.Time
	case n.Kind == network.RoundEnded && !m.begun.IsZero():
		m.rounds.Observe(n.Time.Sub(m.begun).Seconds())
	}
}

// register puts all metrics of a coordinator together.
func (c *Coordinator) register() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	m := c.metrics
	for _, outcome := range outcomes {
		m.updates.WithLabelValues(outcome) // so that those which never happened are 0
	}
	registry.MustRegister(m.updates, m.rounds, m.hungUp, state{c},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

var (
	described = func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("grange_"+name, help, labels, nil)
	}
	descRound     = described("round", "The round under way, or the last one.")
	descFinished  = described("rounds_finished", "Rounds that are finished.")
	descPlanned   = described("rounds_planned", "Rounds that the run has.")
	descMembers   = described("members", "Members of the federation.")
	descDeclared  = described("members_declared", "Members that have declared a contribution.")
	descConnected = described("members_connected", "Members that are connected.")
	descDelivered = described("members_delivered", "Members whose update of the round under way is there.")
	descAccuracy  = described("accuracy", "Accuracy of the global model on clean test data.")
	descPhase     = described("phase", "1 for the phase that the run is in.", "phase")
	descIn        = described("received_bytes_total", "Bytes received, TLS included.")
	descOut       = described("sent_bytes_total", "Bytes sent, TLS included.")
	descOpen      = described("connections", "Open connections.")
)

// state collects what is known at the moment of asking.
type state struct{ c *Coordinator }

// Describe implements prometheus.Collector.
func (s state) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descRound, descFinished, descPlanned, descMembers, descDeclared, descConnected, descDelivered, descAccuracy, descPhase,
		descIn, descOut, descOpen,
	} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (s state) Collect(metrics chan<- prometheus.Metric) {
	status := s.c.federation.Status()
	var declared, connected, delivered int
	for _, m := range status.Members {
		for count, holds := range map[*int]bool{&declared: m.Declaration != nil, &connected: m.Connected, &delivered: m.Delivered} {
			if holds {
				*count++
			}
		}
	}
	finished := status.Round
	if status.Phase == "round" {
		finished--
	}
	in, out := s.c.listener.Bytes()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(descRound, float64(status.Round))
	gauge(descFinished, float64(finished))
	gauge(descPlanned, float64(status.Rounds))
	gauge(descMembers, float64(len(status.Members)))
	gauge(descDeclared, float64(declared))
	gauge(descConnected, float64(connected))
	gauge(descDelivered, float64(delivered))
	if status.Accuracy != nil {
		gauge(descAccuracy, *status.Accuracy)
	}
	gauge(descPhase, 1, status.Phase)
	gauge(descOpen, float64(s.c.listener.Connections()))
	metrics <- prometheus.MustNewConstMetric(descIn, prometheus.CounterValue, float64(in))
	metrics <- prometheus.MustNewConstMetric(descOut, prometheus.CounterValue, float64(out))
}
