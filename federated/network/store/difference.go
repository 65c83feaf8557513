package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"grange/federated/network"
)

// same says how a run differs from the one that is asked for, if it does: the first thing that does, by its key in the
// scenario.
func (r *Run) same(info network.RunInfo) error {
	if r.Name != info.Name {
		return fmt.Errorf("it is of %q, not of %q", r.Name, info.Name)
	}
	if !slices.Equal(r.Members, info.Members) {
		return fmt.Errorf("its members are %s, not %s", strings.Join(r.Members, ", "), strings.Join(info.Members, ", "))
	}
	keys := slices.Concat(slices.Collect(maps.Keys(r.Identity)), slices.Collect(maps.Keys(info.Identity)))
	slices.Sort(keys)
	for _, key := range keys {
		if was, now := r.Identity[key], info.Identity[key]; was != now {
			return differing(key, was, now)
		}
	}
	return nil
}

// scenarioKeys are the scenario's keys for the parts of a run's identity.
var scenarioKeys = map[string]string{
	"data set": "training.dataset", "model": "training.model", "seed": "training.seed", "split": "training.split",
	"global rate": "training.global_rate", "start": "training.start", "local training": "training", "members": "members",
	"training.decay": "training.weight_decay",
}

func scenarioKey(name string) string {
	if key := scenarioKeys[name]; key != "" {
		return key
	}
	return name
}

// differing names what differs in a part of the identity.
func differing(name, was, now string) error {
	key := scenarioKey(name)
	if key == "training.dataset" && was != "" && now != "" {
		return fmt.Errorf("%s has other images or labels than it had: fingerprint %.12s…, now %.12s…", key, was, now)
	}
	var before, after any
	if json.Unmarshal([]byte(was), &before) == nil && json.Unmarshal([]byte(now), &after) == nil {
		key, before, after = within(key, before, after)
	} else {
		before, after = was, now
	}
	return fmt.Errorf("%s is %s, now %s", key, show(before), show(after))
}

// within finds the first thing that differs within two values of JSON.
func within(key string, was, now any) (string, any, any) {
	switch before := was.(type) {
	case map[string]any:
		after, _ := now.(map[string]any)
		for _, field := range slices.Sorted(maps.Keys(before)) {
			if was, now := before[field], after[field]; after != nil && fmt.Sprint(was) != fmt.Sprint(now) {
				return within(subkey(key, field), was, now)
			}
		}
	case []any:
		after, _ := now.([]any)
		for i := range min(len(before), len(after)) {
			if was, now := before[i], after[i]; fmt.Sprint(was) != fmt.Sprint(now) {
				element := fmt.Sprint(i + 1)
				if named, ok := was.(map[string]any); ok && named["Name"] != nil {
					element = fmt.Sprint(named["Name"])
				}
				return within(key+"."+element, was, now)
			}
		}
	}
	return key, was, now
}

// subkey is the scenario's key for a field of what has a key.
func subkey(key, field string) string {
	member, noise := strings.CutSuffix(key, ".noise")
	switch {
	case noise && field == "Rate":
		return key
	case noise && field == "Transition":
		return member + ".transition"
	}
	return scenarioKey(key + "." + strings.ToLower(field))
}

// show writes a value in a few words.
func show(value any) string {
	text := fmt.Sprint(value)
	switch value.(type) {
	case []any, map[string]any:
		text = "a list" // as a matrix of wrong labels
	}
	if value == nil || text == "" {
		return "not set"
	}
	if short := []rune(text); len(short) > 60 {
		text = string(short[:60]) + "…"
	}
	return text
}
